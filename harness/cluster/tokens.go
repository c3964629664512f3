package cluster

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// users lists the user name and the group of each role, such as gauntlet:admin in system:masters.
//
// Users in the group system:masters have all permissions and are exempt from API Priority and
// Fairness. The API server therefore never throttles the test harness or a support component.
var users = []struct {
	role        Role
	name, group string
}{
	{Admin, "gauntlet:admin", "system:masters"},
	{Subject, SubjectUser, ""},
	{Support, "gauntlet:support", "system:masters"},
	{Kubelet, KubeletUser, "system:masters"},
}

// Tokens maps each role, such as Admin or Subject, to its bearer token. The role's clients
// authenticate with this token.
type Tokens map[Role]string

// NewTokens generates a random token for each role.
func NewTokens() Tokens {
	tokens := Tokens{}
	for _, user := range users {
		tokens[user.role] = rand.Text()
	}
	return tokens
}

// File returns the content of the file for kube-apiserver's flag --token-auth-file. It is a CSV
// file with the columns token, user name, user UID and groups.
func (t Tokens) File() []byte {
	var s strings.Builder
	for _, user := range users {
		fmt.Fprintf(&s, "%s,%s,%s,%q\n", t[user.role], user.name, user.role, user.group)
	}
	return []byte(s.String())
}
