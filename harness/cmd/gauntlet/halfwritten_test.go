package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The contents of files that a killed run may leave in its directory.
const (
	wroteScenario    = "name: x\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 1}\nfaults:\n  - restart: {how: kill}\n"
	wroteEnvironment = `{"scenario": "x", "seed": 7, "subject": "ours", "provider": "embedded", "command": ["gauntlet", "run"]}`
	wroteStart       = `{"seq":1,"at":1,"start":{"format":1,"time":"2026-03-01T06:00:00Z","scenario":"x","seed":7,"subject":"ours","provider":"embedded","namespace":"gauntlet"}}` + "\n"
	wroteFault       = `{"seq":2,"at":2,"fault":{"index":0,"name":"restart","event":"fired"}}` + "\n"
	wroteInjected    = `{"seq":2,"at":2,"fault":{"index":0,"name":"restart","event":"injected"}}` + "\n"
	wroteBaseline    = "format: 3\nwritten: []\nscenario: other\nsubject: ours\nruns: 3\nend:\n  replicasets.apps gauntlet/web: \"1\"\n"
)

// TestHalfWritten checks that each command reports one clear error for an incomplete run
// directory. Commands read a truncated history up to its last complete line.
func TestHalfWritten(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  map[string]string // text that the output or the error of each command must contain, by command
	}{
		{"nothing", nil, map[string]string{
			"check": ": found no scenario.yaml; expected a run directory", "shrink": ": found no scenario.yaml; expected a run directory",
			"report": ": found no verdicts.json; expected a run directory, or ", "coverage": ": found no verdicts.json; expected a run directory, or ",
		}},
		{"scenario cut", map[string]string{"scenario.yaml": wroteScenario[:27]}, map[string]string{
			"check": "scenario.yaml:3:1: ", "shrink": "scenario.yaml:3:1: ",
		}},
		{"scenario alone", map[string]string{"scenario.yaml": wroteScenario}, map[string]string{
			"check": ": found no environment.json; expected a run directory", "shrink": ": found no environment.json; expected a run directory", "report": ": found no verdicts.json; ",
		}},
		{"environment cut", map[string]string{"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment[:40]}, map[string]string{
			"check": "environment.json:1:41: expected the JSON object that gauntlet writes to this file, with the command, subject and seed of the run: ", "shrink": "environment.json:1:41: expected the JSON object that gauntlet writes to this file, with the command, subject and seed of the run: ",
		}},
		{"environment of another type", map[string]string{"scenario.yaml": wroteScenario, "environment.json": "[1]"}, map[string]string{
			"check": "environment.json: expected the JSON object that gauntlet writes to this file, with the command, subject and seed of the run: found array at the top; expected an object",
		}},
		{"no history", map[string]string{"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment}, map[string]string{
			"check": "cannot check the history: ", "shrink": "cannot check the history: ",
		}},
		{"scenario of another run", map[string]string{
			"scenario.yaml": strings.Replace(wroteScenario, "name: x", "name: other", 1), "environment.json": wroteEnvironment, "history.jsonl": wroteStart,
		}, map[string]string{
			"check": "scenario.yaml: found scenario other; expected scenario x, which environment.json names", "shrink": "scenario.yaml: found scenario other",
		}},
		{"history of another run", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": strings.Replace(wroteStart, `"scenario":"x"`, `"scenario":"other"`, 1),
		}, map[string]string{
			"check": "history.jsonl: line 1: found the history of scenario other, seed 7, subject ours, provider embedded; expected scenario x, seed 7, subject ours, provider embedded, which environment.json names", "shrink": "history.jsonl: line 1: found the history of scenario other",
			"report": "found the history of scenario other",
		}},
		{"history without a time", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": regexp.MustCompile(`"time":"[^"]*",?`).ReplaceAllString(wroteStart, ""),
		}, map[string]string{"check": "history.jsonl: line 1: start.time: found none; expected when the run began"}},
		{"history of other controllers", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": strings.Replace(wroteStart, `"scenario":"x"`, `"scenario":"x","controllers":["foo"]`, 1),
		}, map[string]string{"check": `history.jsonl: line 1: start.controllers: found ["foo"]; expected [], as in the scenario`}},
		{"scenario with another seed", map[string]string{
			"scenario.yaml": wroteScenario + "seed: 8\n", "environment.json": wroteEnvironment, "history.jsonl": wroteStart,
		}, map[string]string{
			"check": "scenario.yaml: seed: found 8; expected 7, which environment.json names", "shrink": "scenario.yaml: seed: found 8",
		}},
		{"baseline of another scenario", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart, "baseline.yaml": wroteBaseline,
		}, map[string]string{
			"check": "baseline.yaml: found the baseline of scenario other; expected scenario x, which environment.json names",
		}},
		{"history of another fault", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment,
			"history.jsonl": wroteStart + strings.Replace(wroteFault, "restart", "crash", 1),
		}, map[string]string{
			"check": `history.jsonl: line 2: fault.name: found "crash"; expected "restart", which is fault 0 of the scenario`,
		}},
		{"scenario changed after the run", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": strings.Replace(wroteEnvironment, `"seed": 7`, `"seed": 7, "scenarioSHA256": "abc"`, 1), "history.jsonl": wroteStart,
		}, map[string]string{
			"check": "; expected abc, which environment.json names; the file was changed after the run", "shrink": "the file was changed after the run",
		}},
		{"history with another step", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart + `{"seq":2,"at":2,"step":{"index":1,"event":"begun","detail":"x"}}` + "\n",
		}, map[string]string{
			"check": "line 2: step.index: found 1; expected the index of one of the 1 steps of the scenario",
		}},
		{"no baseline", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": strings.Replace(wroteEnvironment, `"seed": 7`, `"seed": 7, "baseline": true`, 1), "history.jsonl": wroteStart,
		}, map[string]string{
			"check": "baseline.yaml: no such file or directory; expected the baseline with which the run was compared", "shrink": "baseline.yaml: no such file",
		}},
		{"not checked", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart + wroteFault,
		}, map[string]string{
			"report": ": the run has no file verdicts.json; to write the file, run gauntlet check", "coverage": "restart",
		}},
		{"a campaign in which all runs passed", map[string]string{"verdicts.json": `{"schema": 1, "runs": [{"scenario": "x", "subject": "ours", "provider": "embedded", "verdict": "pass", "directory": ""}]}`}, map[string]string{
			"report": "1 run: 1 pass", "coverage": ": found no history.jsonl; name directories of runs",
		}},
		// The first command checks the history and writes the verdicts. The other commands
		// read these verdicts.
		{"history cut", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart + wroteInjected + wroteFault[:20],
		}, map[string]string{
			"check": "the end of the history is missing", "report": "the end of the history is missing", "shrink": "give the directory of a run in which a check failed",
			"coverage": "line 3 is incomplete: the end of the history is missing",
		}},
		{"history with garbage, after earlier verdicts", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart + "garbage\n",
			"verdicts.json": `{"schema": 1, "runs": [{"scenario": "x", "subject": "ours", "verdict": "pass", "directory": "."}]}`,
		}, map[string]string{
			"check": "line 2: the line is no valid record", "report": "cannot check the history", "shrink": "cannot check the history",
		}},
		{"an object of the wrong type", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment,
			"history.jsonl": wroteStart + `{"seq":2,"at":2,"commit":{"type":"ADDED","object":{"resource":"pods","namespace":"gauntlet","name":"a","uid":"a","version":1,"body":{"status":{"phase":[]}}}}}` + "\n",
		}, map[string]string{
			"check": "history.jsonl: line 2: decoding the body of pods gauntlet/a, version 1: found array at /status/phase; expected a text",
		}},
		{"an environment without a time", map[string]string{"scenario.yaml": wroteScenario, "environment.json": `{"started": 1}`}, map[string]string{
			"check": ": found number at /started; expected a time such as 2006-01-02T15:04:05Z",
		}},
		{"an environment with a line break", map[string]string{"scenario.yaml": wroteScenario, "environment.json": `{"command": ["x"], "provider": "a\nb"}`}, map[string]string{
			"check": `environment.json: provider: found "a\nb"; expected a text of one line`,
		}},
		{"times that no run has", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment,
			"history.jsonl": wroteStart + strings.Replace(wroteInjected, `"at":2`, `"at":99999999999999`, 1) + strings.Replace(wroteFault, `"seq":2,"at":2`, `"seq":3,"at":-2`, 1),
		}, map[string]string{
			"check": "record 3 has the time -2ns,", "report": "record 3 has the time -2ns,",
		}},
		{"verdicts cut", map[string]string{
			"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart, "verdicts.json": `{"schema": 1, "ru`,
		}, map[string]string{
			"report": "verdicts.json:1:18: expected the verdicts that gauntlet writes to this file, as JSON: ", "coverage": "no fault has fired",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range test.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"check", "report", "coverage", "shrink"} {
				want, asked := test.want[name]
				if !asked {
					continue
				}
				args := []string{name, dir}
				if name == "report" {
					args = append(args, "--out="+t.TempDir())
				}
				said, err := command(t, args...)
				if err != nil {
					said += err.Error()
				}
				if name == "shrink" && exitCode(exitPass, err) != exitUsage { // no run has started
					t.Errorf("shrink: exit %d, error %v; want exit %d", exitCode(exitPass, err), err, exitUsage)
				}
				if said = strings.Join(strings.Fields(said), " "); !strings.Contains(said, want) { // lines are wrapped
					t.Errorf("%s: no %q in\n%s", name, want, said)
				}
			}
		})
	}
}

// TestCheckOnce checks that a run counts once, even if several paths lead to it.
func TestCheckOnce(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	for name, text := range map[string]string{"scenario.yaml": wroteScenario, "environment.json": wroteEnvironment, "history.jsonl": wroteStart} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	said, _ := command(t, "check", dir, link, dir+"/.")
	if !strings.Contains(said, "1 run: 1 unknown") {
		t.Errorf("found no summary of 1 run in\n%s", said)
	}
}
