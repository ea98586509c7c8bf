package hummock_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain leaves the examples out where there is no service for them; tests/client/test_go.py starts one.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("HUMMOCK_TARGET") == "" {
		fmt.Fprintln(os.Stderr, "the examples are compiled, and left out: HUMMOCK_TARGET names no service")
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
