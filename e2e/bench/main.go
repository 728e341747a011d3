package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	only := flag.String("bench", ".", "run only benchmarks that match, as go test -bench has it")
	round := flag.Duration("benchtime", 120*time.Millisecond, "how long one round lasts")
	rounds := flag.Int("count", 3, "how many rounds; the least disturbed is shown")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := run(ctx, plan{only: *only, round: *round, rounds: *rounds})
	if err == nil && *asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(report)
	} else if err == nil {
		err = report.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
