package alike

import (
	"slices"
	"testing"
)

// A crowd tells the same as one comparison after the other.
func TestCrowdTellsAsNamesAndHosts(t *testing.T) {
	names := []string{"Harbor Hotel", "harbor-hotel", "Harb0r Hote1 Support", "Hаrbor Hotel", "Aria", "Ha", ""}
	hosts := []string{"agent.example", "Agent.example", "аria.example", "xn--ria-5cd.example", "aria.example", "ar1a.example", "arla.example"}
	var c Crowd
	for _, n := range names {
		c.Named(n, n)
	}
	for _, h := range hosts {
		c.At(h, h)
	}
	for _, one := range names {
		for _, other := range names {
			if got := slices.Contains(c.LikeName(one), other); got != Names(one, other) {
				t.Errorf("%q and %q: %v", one, other, got)
			}
		}
	}
	for _, one := range hosts {
		for _, other := range hosts {
			if got := slices.Contains(c.LikeHost(one), other); got != Hosts(one, other) {
				t.Errorf("%q and %q: %v", one, other, got)
			}
		}
	}
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://agent.example/a": "agent.example", "https://agent.example:8443": "agent.example:8443", "agent": "agent", ":": ":",
	} {
		if got := HostOf(address); got != want {
			t.Errorf("%q: %q", address, got)
		}
	}
}
