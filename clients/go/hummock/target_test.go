package hummock

import "testing"

func TestTargetsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, name := range map[string]string{
		"127.0.0.1:7420":         "dns:///127.0.0.1:7420",
		"memory.example":         "dns:///memory.example:7420",
		"[::1]:8000":             "dns:///[::1]:8000",
		"[::1]":                  "dns:///[::1]:7420",
		"unix:///run/hummock.so": "unix:/run/hummock.so",
		"unix:hummock.sock":      "unix:hummock.sock",
	} {
		at, err := parseTarget(text)
		if err != nil || at.name() != name {
			t.Errorf("%s became %s, %v; expected %s", text, at.name(), err, name)
		}
	}
}

func TestWhatIsNoTargetIsSaid(t *testing.T) {
	for _, text := range []string{":7420", "host:", "host:0", "host:65536", "host:+1", "host:http", "::1", "unix:", "unix://"} {
		if at, err := parseTarget(text); err == nil {
			t.Errorf("%q was taken for %s", text, at)
		}
	}
}

func TestTheEnvironmentNamesTheTargetWhereTheProgramDoesNot(t *testing.T) {
	t.Setenv("HUMMOCK_TARGET", "unix:///run/hummock.sock")
	if at, err := parseTarget(""); err != nil || at.path != "/run/hummock.sock" {
		t.Errorf("got %s, %v", at, err)
	}
	if at, err := parseTarget("other:1"); err != nil || at.host != "other" {
		t.Errorf("got %s, %v", at, err)
	}
	t.Setenv("HUMMOCK_TARGET", "")
	if at, err := parseTarget(""); err != nil || at.String() != DefaultTarget {
		t.Errorf("got %s, %v", at, err)
	}
}

func TestLocalIsWhatNobodyElseHears(t *testing.T) {
	for text, local := range map[string]bool{
		"unix:///run/hummock.sock": true,
		"localhost:1":              true,
		"127.8.9.1:1":              true,
		"[::1]:1":                  true,
		"10.0.0.1:1":               false,
		"localhost.example:1":      false,
		"127.0.0.1.example:1":      false,
	} {
		if at, err := parseTarget(text); err != nil || at.isLocal() != local {
			t.Errorf("%s: local is %t, %v", text, at.isLocal(), err)
		}
	}
}
