package process

import (
	"os/exec"
	"strings"
	"testing"
)

func TestParseIdentity(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseIdentity(self.String()); err != nil || got != self {
		t.Errorf("ParseIdentity(%q) = %+v, %v; want %+v", self, got, err, self)
	}
	for _, bad := range []string{"", "a/b/c/1", "a/b/c/x/2", "a/b/c/1/x", "a/b/c/-1/2", "a/b/c/1/2/3"} {
		if id, err := ParseIdentity(bad); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("ParseIdentity(%q) = %+v, %v; want an error that says what was expected", bad, id, err)
		}
	}
}

func TestExistence(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Identity)) Identity {
		id := self
		change(&id)
		return id
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		id   Identity
		want Existence
	}{
		{"this process", self, Lives},
		{"a process that has exited", with(func(id *Identity) { id.PID = child.Process.Pid }), Gone},
		{"an earlier process with the same PID", with(func(id *Identity) { id.StartTicks-- }), Gone},
		{"a process of an earlier boot", with(func(id *Identity) { id.Boot = "earlier" }), Gone},
		{"a process on another machine", with(func(id *Identity) { id.Host += "-other" }), Elsewhere},
		{"a process on another machine with another boot ID", with(func(id *Identity) { id.Host, id.Boot = "other", "other" }), Elsewhere},
		{"a process in another PID namespace", with(func(id *Identity) { id.Namespace = "pid:[1]" }), Elsewhere},
	} {
		if got, err := test.id.Existence(); err != nil || got != test.want {
			t.Errorf("%s: Existence() = %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}
