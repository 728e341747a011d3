package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// binary builds the product once, as it is shipped.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "bin", "countersign")
	build := exec.Command("go", "build", "-o", path, "countersign.dev/cmd/countersign")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the product: %w\n%s", err, out)
	}
	return path, nil
})

// isStarted is whether anybody has asked for the shared product.
var isStarted atomic.Bool

// product is a running countersign dev, and what its ready file says.
type product struct {
	PublicURL   string      `json:"public_url"`
	DatabaseURL string      `json:"database_url"`
	MasterKey   string      `json:"master_key_file"`
	ConsoleLink string      `json:"console_link"`
	Brands      []brand     `json:"brands"`
	Agent       agentRecord `json:"agent"`

	bin    string
	folder string // where it was started, as a newcomer stands in a folder
	data   string // --data, below folder; empty: not given
	stdout string // file with what it printed
	stderr string // file with its log

	process *exec.Cmd
	ended   chan error

	secrets secrets
}

type brand struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	InterfaceURL string `json:"interface_url"`
	CardURL      string `json:"card_url"`
	Issuer       string `json:"issuer"`
	IDPIssuer    string `json:"idp_issuer"`
	APIKey       string `json:"api_key"`
	Audience     string `json:"audience"`
	Users        []user `json:"users"` // alex first
}

type user struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Subject  string `json:"subject"`
}

type agentRecord struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}

// theProduct is the shared one.
func theProduct(t *testing.T) *product {
	t.Helper()
	isStarted.Store(true)
	p, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs countersign dev in the folder until everything answers. settings
// are variables of its environment.
func start(folder, data, addr string, settings ...string) (*product, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	return startBinary(bin, folder, data, addr, settings...)
}

func startBinary(bin, folder, data, addr string, settings ...string) (*product, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	p := &product{
		bin: bin, folder: folder, data: data, ended: make(chan error, 1),
		stdout: filepath.Join(folder, "stdout.txt"), stderr: filepath.Join(folder, "stderr.txt"),
	}
	ready := filepath.Join(folder, "ready.json")
	args := []string{"dev", "--addr", addr, "--ready-file", ready, "--log-level", "debug"}
	if data != "" {
		args = append(args, "--data", data)
	}
	p.process = exec.Command(bin, args...)
	p.process.Dir, p.process.Env = folder, append(quietEnvironment(), settings...)
	out, err := os.Create(p.stdout)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	// Appended to: a product that is started again goes on with its log.
	log, err := os.OpenFile(p.stderr, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.process.Stdout, p.process.Stderr = out, log
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, fmt.Errorf("start countersign dev: %w", err)
	}
	go func() { p.ended <- p.process.Wait() }()
	return p, p.awaitReady(ready)
}

// eventually gives turns, a pause apart, to look whether something has come about
// that takes the product a few seconds. They end long after that.
func eventually(t *testing.T) iter.Seq[int] {
	const patience, pause = 30 * time.Second, 100 * time.Millisecond
	return func(yield func(int) bool) {
		for i, began := 0, time.Now(); time.Since(began) < patience && yield(i); i++ {
			select {
			case <-time.After(pause):
			case <-t.Context().Done():
				return
			}
		}
	}
}

// quietEnvironment is ours without the settings of a product that the developer
// may be running.
func quietEnvironment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "COUNTERSIGN_") {
			env = append(env, v)
		}
	}
	return env
}

func (p *product) awaitReady(file string) error {
	const patience, pause = 3 * time.Minute, 50 * time.Millisecond
	late := time.After(patience)
	look := time.NewTicker(pause)
	defer look.Stop()
	for {
		raw, err := os.ReadFile(file)
		if err == nil {
			return json.Unmarshal(raw, p)
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			log, _ := os.ReadFile(p.stderr) // empty says as much
			return fmt.Errorf("countersign dev ended before it was ready: %v\n%s", err, log)
		case <-late:
			return fmt.Errorf("countersign dev was not ready after %s; its log: %s", patience, p.stderr)
		case <-look.C:
		}
	}
}

// stop asks the product to end, as Ctrl-C does, and demands that it ends well:
// without a word of complaint, and leaving no process behind.
func (p *product) stop(ctx context.Context) error {
	children, err := descendants(p.process.Process.Pid)
	if err != nil {
		return err
	}
	if len(children) == 0 {
		return errors.New("stop: the product had started no PostgreSQL, or ps does not show it")
	}
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		if err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	case <-ctx.Done():
		_ = p.process.Process.Kill() // said below
		return fmt.Errorf("stop: still running: %w", ctx.Err())
	}
	for _, pid := range children {
		if syscall.Kill(pid, 0) == nil {
			return fmt.Errorf("stop: process %d, started by the product, outlived it", pid)
		}
	}
	return nil
}

func (p *product) isAlive() bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return false
	default:
		return true
	}
}

// descendants lists the processes that pid has started, and those they have.
func descendants(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes (install procps): %w", err)
	}
	children := make(map[int][]int)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		child, err1 := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		children[parent] = append(children[parent], child)
	}
	var found []int
	for wave := children[pid]; len(wave) > 0; {
		found = append(found, wave...)
		var following []int
		for _, c := range wave {
			following = append(following, children[c]...)
		}
		wave = following
	}
	return found, nil
}

// run runs another command of the same binary to its end.
func (p *product) run(t *testing.T, stdin string, args ...string) (stdout string, exit int) {
	t.Helper()
	c := exec.Command(p.bin, args...) // also from clean-ups, when the test's context is over
	c.Dir, c.Env, c.Stdin = p.folder, quietEnvironment(), strings.NewReader(stdin)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatalf("countersign %s: %v", args[0], err)
	}
	if complaint.Len() > 0 {
		t.Logf("countersign %s %s said: %s", args[0], args[1], complaint.String())
	}
	return string(out), c.ProcessState.ExitCode()
}

// How long an instance may act on old settings of a Brand, and on what an agent was.
const (
	settingsAge = time.Second
	agentAge    = 2 * time.Second
)

// operate runs an operator's command over the database and expects it to work.
// Where that changes a Brand's settings, every instance knows when it returns.
func (p *product) operate(t *testing.T, args ...string) {
	t.Helper()
	args = append(args, "--database-url", p.DatabaseURL)
	if out, exit := p.run(t, "", args...); exit != 0 {
		t.Fatalf("countersign %s: exit %d\n%s", strings.Join(args[:2], " "), exit, out)
	}
	if slices.Contains([]string{"brand", "scope", "idp"}, args[0]) {
		time.Sleep(settingsAge)
	}
}

func (p *product) brand(t *testing.T, id string) brand {
	t.Helper()
	for _, b := range p.Brands {
		if b.ID == id {
			return b
		}
	}
	t.Fatalf("the product has no Brand %s", id)
	return brand{}
}

func (p *product) hotel(t *testing.T) brand     { return p.brand(t, "harbor-hotel") }
func (p *product) outfitter(t *testing.T) brand { return p.brand(t, "fern-and-fell") }

// page is the address of one of the Brand's pages for people.
func (p *product) page(b brand, rest string) string { return p.PublicURL + "/b/" + b.ID + "/" + rest }

// change runs a statement as the owner of the database, where only the passing
// of time, or somebody's hand in the database, does what a test needs.
func (p *product) change(t *testing.T, statement string, args ...any) {
	t.Helper()
	tag, err := p.connect(t).Exec(context.Background(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if tag.RowsAffected() == 0 && tag.Update() {
		t.Fatalf("nothing to change: %s", statement)
	}
}

// count asks the database for one number.
func (p *product) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := p.connect(t).QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (p *product) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), p.DatabaseURL) // also from clean-ups
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// livingGrants counts what the agent may do for this user of its own.
func (p *product) livingGrants(t *testing.T, sub string) int {
	t.Helper()
	return p.count(t, `SELECT count(*) FROM grants WHERE agent_sub = $1 AND ended_at IS NULL`, sub)
}
