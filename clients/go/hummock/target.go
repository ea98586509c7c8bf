package hummock

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// DefaultTarget is called where neither the program nor HUMMOCK_TARGET names another.
const DefaultTarget = "127.0.0.1:7420"

const (
	targetVariable = "HUMMOCK_TARGET"
	defaultPort    = "7420"
)

// target is where the service is: a socket's path, or a host and a port.
type target struct {
	path, host, port string
}

// parseTarget reads `host`, `host:port`, `[ipv6]:port`, `unix:path` or `unix:///path`. Empty means HUMMOCK_TARGET, and
// without it DefaultTarget.
func parseTarget(text string) (target, error) {
	if text == "" {
		text = os.Getenv(targetVariable)
	}
	if text == "" {
		text = DefaultTarget
	}
	if rest, isUnix := strings.CutPrefix(text, "unix:"); isUnix {
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return target{}, fmt.Errorf("%s names no socket; write unix:///path/to/hummock.sock", text)
		}
		return target{path: path}, nil
	}
	host, port, err := hostAndPort(text)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || number == 0 {
		return target{}, fmt.Errorf("%s is no target; write host:port, for example %s, or unix:///path", text, DefaultTarget)
	}
	return target{host: host, port: port}, nil
}

func hostAndPort(text string) (host, port string, err error) {
	if strings.HasSuffix(text, "]") || !strings.Contains(text, ":") {
		return strings.Trim(text, "[]"), defaultPort, nil
	}
	return net.SplitHostPort(text)
}

// name is the target as gRPC writes it.
func (t target) name() string {
	if t.path != "" {
		return "unix:" + t.path
	}
	return "dns:///" + net.JoinHostPort(t.host, t.port)
}

// String is the target as people write it.
func (t target) String() string {
	if t.path != "" {
		return "unix:" + t.path
	}
	return net.JoinHostPort(t.host, t.port)
}

// isLocal says whether the target is on this machine, so that nobody else hears what is said in the clear.
func (t target) isLocal() bool {
	if t.path != "" || t.host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(t.host)
	return err == nil && address.IsLoopback()
}
