package history

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestEndWith checks what EndWith appends to histories whose recorder died.
func TestEndWith(t *testing.T) {
	const (
		start = `{"seq":1,"at":1,"start":{"format":2,"ends":true,"time":"2026-03-01T06:00:00Z","scenario":"x","seed":7,"subject":"ours","provider":"virtual","namespace":"gauntlet"}}` + "\n"
		phase = `{"seq":2,"at":5,"phase":{"name":"chaos"}}` + "\n"
		end   = `{"seq":3,"at":9,"end":{}}` + "\n"
	)
	for _, test := range []struct {
		name, content string
		want          int   // the number of records afterwards
		gap           bool  // the second last record is the gap
		err           error // nil: no error
	}{
		{"cut within a line", start + phase + end[:9], 4, true, nil},
		{"cut after a line", start + phase, 4, true, nil},
		{"complete", start + phase + end, 3, false, nil},
		{"empty", "", 0, false, ErrNoRecord},
		{"cut within the first line", start[:30], 0, false, ErrNoRecord},
		{"garbage", start + "garbage\n", 0, false, errAny},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history.jsonl")
			if err := os.WriteFile(path, []byte(test.content), 0o644); err != nil {
				t.Fatal(err)
			}
			gap := Gap{Source: "the run", Detail: "it <died>\nlast line"}
			err := EndWith(path, Record{Gap: &gap})
			if test.err != nil {
				if err == nil || !errors.Is(test.err, errAny) && !errors.Is(err, test.err) {
					t.Errorf("error %v; want %v", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var all []*Record
			for record, err := range ReadFile(path) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, record)
			}
			if len(all) != test.want || all[len(all)-1].End == nil {
				t.Fatalf("%d records; want %d, the last one an end record", len(all), test.want)
			}
			if found := all[len(all)-2]; test.gap && (found.Gap == nil || *found.Gap != gap || found.At != 5*time.Nanosecond) {
				t.Errorf("record %+v; want the gap", found)
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")
