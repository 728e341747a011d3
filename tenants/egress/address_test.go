package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// R24: what must never be connected to.
var forbidden = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
	"127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2",
	"172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1",
	"192.88.99.1", "192.168.0.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
	"203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1",
	"64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:808:808::1",
	"2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1",
	"2620:4f:8000::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
	"fec0::1", "ff02::1", "ff0e::1", "2606:4700::1111%eth0",
}

func TestOnlyPublicAddressesAreDialled(t *testing.T) { // R24
	for _, text := range forbidden {
		to := net.JoinHostPort(text, "443")
		if err := dialPublic(t.Context(), "tcp", to, nil); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s: %v, want ErrForbiddenAddress", to, err)
		}
	}
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "172.15.255.255",
		"172.32.0.1", "168.63.129.17", "192.167.255.255", "198.17.255.255", "223.255.255.255",
		"2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888",
	} {
		to := net.JoinHostPort(text, "443")
		if err := dialPublic(t.Context(), "tcp", to, nil); err != nil {
			t.Errorf("%s: %v, want it let through", to, err)
		}
	}
}

func TestOnlyPort443IsDialled(t *testing.T) { // R24: 22, 6379 and friends speak enough HTTP to be abused
	for _, port := range []string{"0", "22", "25", "80", "444", "6379", "8443"} {
		if err := dialPublic(t.Context(), "tcp", "8.8.8.8:"+port, nil); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("port %s: %v, want ErrForbiddenAddress", port, err)
		}
	}
}

func TestDevelopmentOpensLoopbackAndNothingElse(t *testing.T) { // R24
	for _, to := range []string{"127.0.0.1:8080", "[::1]:80"} {
		if err := dialEither(t.Context(), "tcp", to, nil); err != nil {
			t.Errorf("%s: %v, want it let through", to, err)
		}
	}
	for _, text := range forbidden {
		if isLoopback(netip.MustParseAddr(text)) {
			continue
		}
		to := net.JoinHostPort(text, "443")
		if err := dialEither(t.Context(), "tcp", to, nil); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s: %v, want ErrForbiddenAddress", to, err)
		}
		if err := dialLoopback(t.Context(), "tcp", to, nil); !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s without TLS: %v, want ErrForbiddenAddress", to, err)
		}
	}
	if err := dialLoopback(t.Context(), "tcp", "8.8.8.8:443", nil); !errors.Is(err, ErrForbiddenAddress) {
		t.Errorf("public address without TLS: %v, want ErrForbiddenAddress", err)
	}
}

// R24: the name is harmless when somebody looks at it and means loopback when
// the connection is made.
func TestRebindingIsStoppedWhenConnecting(t *testing.T) {
	victim, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	touched := make(chan struct{}, 1)
	go func() {
		if conn, err := victim.Accept(); err == nil {
			conn.Close()
			touched <- struct{}{}
		}
	}()
	_, port, _ := net.SplitHostPort(victim.Addr().String())

	dialer := &net.Dialer{
		Timeout:        5 * time.Second,
		ControlContext: dialPublic,
		Resolver:       resolverOf(t, [4]byte{127, 0, 0, 1}),
	}
	for _, host := range []string{"keys.agent.example", "127.0.0.1", "localhost"} {
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrForbiddenAddress) {
			t.Errorf("%s: %v, want ErrForbiddenAddress", host, err)
		}
	}
	victim.Close()
	select {
	case <-touched:
		t.Error("the victim saw a connection")
	default:
	}
}

// resolverOf asks a name server that answers every question with addr.
func resolverOf(t *testing.T, addr [4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answerWith(buf[:n], addr); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answerWith(question []byte, addr [4]byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: addr},
		}}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
