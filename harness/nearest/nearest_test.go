package nearest

import "testing"

func TestName(t *testing.T) {
	names := []string{"max-surge", "max-unavailable", "slow-start", "status", "deployment-status"}
	for _, test := range []struct{ word, want string }{
		{"max-surg", "max-surge"},
		{"MaxSurge", "max-surge"},
		{"max-usrge", "max-surge"},
		{"statsu", "status"},
		{"unavailable", "max-unavailable"},
		{"stat", "status"},
		{"slowstart", "slow-start"},
		{"Start-slow", "slow-start"},
		{"pods", ""},
		{"slwo-start", "slow-start"},
		{"slog-stirt", "slow-start"},
		{"stobxs", ""},
		{"sta", ""},                       // too short for a part of a name
		{"file:///etc/passwd/status", ""}, // most of the word is not in the name
		{"a", ""},                         // each name contains this letter, so no name is nearest
		{"", ""},
	} {
		if got := Name(test.word, names); got != test.want {
			t.Errorf("Name(%q) = %q, want %q", test.word, got, test.want)
		}
	}
	if got := Suggestion("max-surg", names); got != "; did you mean max-surge?" {
		t.Errorf("Suggestion: got %q", got)
	}
	if got := Suggestion("pods", names); got != "" {
		t.Errorf("Suggestion of no name: got %q, want none", got)
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "xabc", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(test.from, test.to); got != test.want {
			t.Errorf("distance(%q, %q) = %d, want %d", test.from, test.to, got, test.want)
		}
	}
}
