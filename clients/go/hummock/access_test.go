package hummock

import (
	"strings"
	"testing"
)

func TestATokenIsNeverSentToAnotherMachineInTheClear(t *testing.T) {
	if _, err := New("memory.example:7420", WithToken("secret")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	t.Setenv("HUMMOCK_TOKEN", "secret")
	if _, err := New("10.0.0.1:7420"); err == nil {
		t.Error("the environment's token would be sent in the clear")
	}
	for _, allowed := range [][]Option{{WithToken("")}, {WithTLS(nil)}} {
		client, err := New("memory.example:7420", allowed...)
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
}

func TestGRPCItselfKeepsATokenFromTheClear(t *testing.T) {
	if !(bearer{token: "secret", secure: true}).RequireTransportSecurity() {
		t.Error("gRPC would send it over any connection")
	}
}

func TestWhatIsNoTokenAndNoCertificateIsSaid(t *testing.T) {
	for _, wrong := range []Option{WithToken("two words"), WithToken("密"), WithToken("a\n"), WithRootCertificates([]byte("none"))} {
		if client, err := New("127.0.0.1:7420", wrong); err == nil {
			t.Error("it was taken")
			client.Close()
		}
	}
}
