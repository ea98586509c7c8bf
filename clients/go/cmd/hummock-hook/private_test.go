package main

import (
	"strings"
	"testing"
)

func TestWhatIsPrivateIsTakenOut(t *testing.T) {
	for _, each := range allCases(t).Private {
		if got := withoutPrivate(each.Sent); got != each.Want {
			t.Errorf("%s: got %q", each.Case, got)
		}
	}
}

func TestManyTagsTakeNoTime(t *testing.T) {
	// A quadratic scan would not end within the run.
	if got := withoutPrivate("a" + strings.Repeat("<private>", 1_000_000)); got != "a" {
		t.Errorf("got %d bytes", len(got))
	}
}
