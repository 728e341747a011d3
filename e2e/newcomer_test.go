package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What countersign dev prints is all that a newcomer has: each command in it
// works as it stands there, pasted into a shell in the same folder.
func TestNewcomerFlow(t *testing.T) {
	p := theProduct(t)
	printed, err := os.ReadFile(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	commands := commandsIn(string(printed))
	if len(commands) != 5 {
		t.Fatalf("%d commands, want a login and a message at each Brand, and a check:\n%s", len(commands), printed)
	}
	alex := newPerson(t, p)
	var last string
	for _, command := range commands[:2] {
		last = p.loginByHand(t, alex, command)
	}
	p.sendByHand(t, alex, commands[2])
	if out, err := p.paste(commands[3]).CombinedOutput(); err != nil || !strings.Contains(string(out), "Your parcel is at the depot") {
		t.Errorf("%s\n%v\n%s", commands[3], err, out)
	}
	// Other tests' tokens lie in the same file; the newcomer has but one.
	check := strings.Replace(commands[4], "pa token", "pa token --sub alex-phone", 1)
	if out, err := p.paste(check).CombinedOutput(); err != nil {
		t.Errorf("%s\n%v\n%s", check, err, out)
	}
	// The login ends with a hint of what to type next.
	hint := regexp.MustCompile(`The access token: (.+)`).FindStringSubmatch(last)
	if hint == nil {
		t.Fatalf("no hint in %q", last)
	}
	if out, err := p.paste(hint[1]).CombinedOutput(); err != nil {
		t.Errorf("%s\n%v\n%s", hint[1], err, out)
	}

	links := regexp.MustCompile(`http://\S+/agents`).FindAllString(string(printed), -1)
	if len(links) != 2 {
		t.Fatalf("%d links to My agents, want 2", len(links))
	}
	for _, link := range links {
		alex.open(link)
		alex.mustSee("My agents")
		alex.mustRead("Aria")
	}
}

// commandsIn finds the commands: they are indented, and one that ends with a
// pipe goes on in the next line.
func commandsIn(printed string) []string {
	var commands []string
	whole := strings.ReplaceAll(printed, "|\n", "| ")
	for line := range strings.Lines(whole) {
		if text := strings.TrimSpace(line); strings.HasPrefix(line, "  ") && strings.Contains(text, "countersign pa ") {
			commands = append(commands, text)
		}
	}
	return commands
}

// paste runs a command as a shell in the newcomer's folder does. The binary is
// on the path, as an installed one is.
func (p *product) paste(command string) *exec.Cmd {
	c := exec.Command("sh", "-c", command)
	c.Dir = p.folder
	c.Env = append(quietEnvironment(), "PATH="+filepath.Dir(p.bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return c
}

// loginByHand pastes a login, opens the link that it prints, allows everything
// and returns what was printed.
func (p *product) loginByHand(t *testing.T, alex *person, command string) string {
	t.Helper()
	c := p.paste(command)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewReader(out)
	var link, all string
	for link == "" {
		line, err := lines.ReadString('\n')
		all += line
		if err != nil {
			t.Fatalf("%s printed no link: %v\n%s", command, err, all)
		}
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "http://") {
			link = text
		}
	}
	_, code, _ := strings.Cut(link, "user_code=")
	p.secrets.keep("user code", code)
	alex.open(link)
	alex.signIn("alex")
	alex.mustRead(code)
	alex.allow()
	alex.mustSee(allowedHeading)
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, rest)
	}
	return all + string(rest)
}

// sendByHand runs the command that speaks to the hotel's agent. What that needs and
// may not do yet, it asks the person for, at a link that is printed.
func (p *product) sendByHand(t *testing.T, alex *person, command string) {
	t.Helper()
	c := p.paste(command)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	var all strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		link := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(link, "http://") {
			continue
		}
		_, code, _ := strings.Cut(link, "user_code=")
		p.secrets.keep("user code", code, strings.ReplaceAll(code, "-", ""))
		alex.open(link)
		if !alex.has(`[name=scope]`) {
			alex.signIn("alex")
		}
		alex.allow()
		alex.mustSee(allowedHeading)
	}
	if err := c.Wait(); err != nil || !strings.Contains(all.String(), "champagne is on its way") {
		t.Errorf("%s: %v\n%s", command, err, all.String())
	}
}
