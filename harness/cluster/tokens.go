package cluster

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// users lists the user name and the group of each role.
// The group system:masters has all permissions and is exempt from API Priority and
// Fairness, so the API server never throttles the harness or a support component.
var users = []struct {
	role        Role
	name, group string
}{
	{Admin, "gauntlet:admin", "system:masters"},
	{Subject, SubjectUser, ""},
	{Support, "gauntlet:support", "system:masters"},
}

// Tokens contains the bearer token of each role of a cluster.
type Tokens map[Role]string

// NewTokens generates the tokens of a new cluster.
func NewTokens() Tokens {
	tokens := Tokens{}
	for _, user := range users {
		tokens[user.role] = rand.Text()
	}
	return tokens
}

// File returns the tokens in the format of kube-apiserver's --token-auth-file.
// The columns are token, user, uid and groups.
func (t Tokens) File() []byte {
	var s strings.Builder
	for _, user := range users {
		fmt.Fprintf(&s, "%s,%s,%s,%q\n", t[user.role], user.name, user.role, user.group)
	}
	return []byte(s.String())
}
