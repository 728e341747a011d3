package i18n

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// calendar is how a language writes a day. The month comes as a word of the
// language, so that 3/4 is never read as two different days.
type calendar struct {
	Months   []string `json:"months"`
	Date     string   `json:"date"`     // {day}, {month}, {year}
	DateTime string   `json:"datetime"` // {date}, {time}, {zone}
}

func (c calendar) check() error {
	if len(c.Months) != 12 {
		return fmt.Errorf("calendar has %d months", len(c.Months))
	}
	for _, need := range []string{"{day}", "{month}", "{year}"} {
		if !strings.Contains(c.Date, need) {
			return errors.New("calendar date lacks " + need)
		}
	}
	for _, need := range []string{"{date}", "{time}", "{zone}"} {
		if !strings.Contains(c.DateTime, need) {
			return errors.New("calendar datetime lacks " + need)
		}
	}
	return nil
}

// Date writes the day of t in t's own time zone.
func (l Language) Date(t time.Time) string {
	if len(l.calendar.Months) != 12 {
		return t.Format("2006-01-02")
	}
	return strings.NewReplacer(
		"{day}", strconv.Itoa(t.Day()),
		"{month}", l.calendar.Months[t.Month()-1],
		"{year}", strconv.Itoa(t.Year()),
	).Replace(l.calendar.Date)
}

// DateTime writes day, time and the name of the zone: the server does not know
// where the reader is, so the time never stands without its zone.
func (l Language) DateTime(t time.Time) string {
	return strings.NewReplacer(
		"{date}", l.Date(t),
		"{time}", t.Format("15:04"),
		"{zone}", zoneName(t),
	).Replace(l.calendar.DateTime)
}

// zoneName is "UTC" or "CET"; zones without letters are told by their offset.
func zoneName(t time.Time) string {
	name, _ := t.Zone()
	if name == "" || strings.ContainsAny(name, "+-0123456789") {
		return "UTC" + t.Format("-07:00")
	}
	return name
}
