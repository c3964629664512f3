// Package rbacaudit compares the RBAC permissions of a subject with its requests in a
// run. It finds missing permissions and permissions that were never used. It reads only
// histories and RBAC rules.
package rbacaudit

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Permission is a verb with a resource, such as "update deployments.apps/status". It
// contains neither namespaces nor names of objects.
type Permission string

func permission(verb, resource, group, subresource string) Permission {
	words := verb + " " + resource
	if group != "" {
		words += "." + group
	}
	if subresource != "" {
		words += "/" + subresource
	}
	return Permission(words)
}

// Granted returns the permissions that rules grant, sorted and without duplicates. The
// rules must not contain wildcards, because Granted does not expand them: "*" would be
// a permission of its own.
func Granted(rules ...rbacv1.PolicyRule) []Permission {
	var all []Permission
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					all = append(all, permission(verb, resource, group, subresource))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Requested contains the permissions that a subject needed in a run.
type Requested struct {
	// Permissions are the permissions that the requests needed, sorted and without
	// duplicates.
	Permissions []Permission `json:"rights"`
	// Refused describes the requests that the API server denied with 403 Forbidden. A
	// restarted API server denies all requests until it has loaded its roles. Therefore
	// a denial does not count if a later request for the same object was allowed, even
	// with another verb: after a denied list, a client may watch instead. Permissions
	// still contains the denied verb.
	Refused []string `json:"refused,omitempty"`
}

// RequestedIn returns the permissions that the requests in a history needed. Its error
// is that of the history.
func RequestedIn(records iter.Seq2[*history.Record, error]) (Requested, error) {
	var requested Requested
	requests := map[uint64]*history.Request{}
	var refusals []*history.Request // without a later allowed request
	for record, err := range records {
		if err != nil {
			return Requested{}, err
		}
		if r := record.Request; r != nil && r.Resource != "" {
			requests[r.ID] = r
			requested.Permissions = append(requested.Permissions, needed(r))
		}
		if r := record.Response; r != nil && requests[r.ID] != nil {
			switch request := requests[r.ID]; {
			case refused(request, r):
				refusals = append(refusals, request)
			case granted(r):
				refusals = slices.DeleteFunc(refusals, func(refusal *history.Request) bool {
					return needed(refusal) == needed(request) || sameObject(refusal, request)
				})
			}
		}
	}
	for _, refusal := range refusals {
		requested.Refused = append(requested.Refused, describe(refusal))
	}
	slices.Sort(requested.Permissions)
	requested.Permissions = slices.Compact(requested.Permissions)
	return requested, nil
}

func needed(r *history.Request) Permission {
	resource, group, _ := strings.Cut(r.Resource, ".")
	return permission(r.Verb, resource, group, r.Subresource)
}

// refused reports whether the API server denied the request for lack of a permission.
// Creates do not count, because quotas and terminating namespaces also answer 403 to
// them. A missing permission to create still shows in Permissions, because Permissions
// contains denied requests too.
func refused(request *history.Request, response *history.Response) bool {
	return response.ServerCode == http.StatusForbidden && request.Verb != "create"
}

// sameObject reports whether two requests address the same object or collection. All
// events count as the same, because clients do not repeat a denied event.
func sameObject(a, b *history.Request) bool {
	if a.Resource != b.Resource || a.Subresource != b.Subresource {
		return false
	}
	resource, _, _ := strings.Cut(a.Resource, ".")
	return resource == "events" || a.Namespace == b.Namespace && a.Name == b.Name
}

// granted reports whether a request was authorized, whatever its result.
func granted(response *history.Response) bool {
	switch response.ServerCode {
	case 0, http.StatusUnauthorized, http.StatusForbidden:
		return false
	}
	return response.ServerCode < http.StatusInternalServerError
}

func describe(r *history.Request) string {
	return fmt.Sprintf("%s: %s %s/%s", r.Subject, needed(r), r.Namespace, r.Name)
}

// Without returns the permissions in some that are not in others.
func Without(some, others []Permission) []Permission {
	return slices.DeleteFunc(slices.Clone(some), func(r Permission) bool { return slices.Contains(others, r) })
}
