package cluster

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// users is who each role authenticates as, and the user's group.
// system:masters may do everything and is exempt from priority and fairness, so
// neither the harness nor a support component is ever throttled.
var users = []struct {
	role        Role
	name, group string
}{
	{Admin, "gauntlet:admin", "system:masters"},
	{Subject, SubjectUser, ""},
	{Support, "gauntlet:support", "system:masters"},
}

// Tokens is a bearer token for each role of one cluster.
type Tokens map[Role]string

// NewTokens draws the tokens of a new cluster.
func NewTokens() Tokens {
	tokens := Tokens{}
	for _, user := range users {
		tokens[user.role] = rand.Text()
	}
	return tokens
}

// File is the tokens in the form of kube-apiserver's --token-auth-file: token,
// user, uid, groups.
func (t Tokens) File() []byte {
	var s strings.Builder
	for _, user := range users {
		fmt.Fprintf(&s, "%s,%s,%s,%q\n", t[user.role], user.name, user.role, user.group)
	}
	return []byte(s.String())
}
