package alike

import (
	"net/url"
	"strings"
)

// HostOf is the host of the address; what is no address stays as it is.
func HostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// Crowd is who is there already, prepared so that many can be held against it.
type Crowd struct {
	names []face
	hosts map[string][]face
}

type face struct{ who, shape string } // shape: the name's skeleton, or the host as machines compare it

// Named adds somebody with a name. A name too short to say is passed over.
func (c *Crowd) Named(who, name string) {
	if shape := skeleton(name); len(shape) >= tooShort {
		c.names = append(c.names, face{who, shape})
	}
}

// At adds somebody with an address.
func (c *Crowd) At(who, host string) {
	if c.hosts == nil {
		c.hosts = make(map[string][]face)
	}
	shape := look(host)
	c.hosts[shape] = append(c.hosts[shape], face{who, Host(host)})
}

// LikeName returns who has a name that this one can be taken for, as Names tells.
func (c *Crowd) LikeName(name string) (who []string) {
	shape := skeleton(name)
	if len(shape) < tooShort {
		return nil
	}
	for _, f := range c.names {
		if strings.Contains(f.shape, shape) || strings.Contains(shape, f.shape) {
			who = append(who, f.who)
		}
	}
	return who
}

// LikeHost returns who has another address that this one can be taken for, as Hosts
// tells.
func (c *Crowd) LikeHost(host string) (who []string) {
	for _, f := range c.hosts[look(host)] {
		if f.shape != Host(host) {
			who = append(who, f.who)
		}
	}
	return who
}
