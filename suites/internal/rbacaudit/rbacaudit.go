// Package rbacaudit compares the RBAC permissions of a subject with the subject's requests in a
// run. The subject is the program under test, and the history of the run contains its requests. The
// comparison shows which permissions are missing, and which ones are never used. The package sends
// no requests to a cluster.
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

// Permission is a verb and a resource, such as "update deployments.apps/status". It does not say
// for which namespaces and objects RBAC allows the verb.
type Permission string

// permission returns the Permission for a verb and a resource. The group and the subresource may
// be "".
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

// Granted returns the permissions that RBAC rules grant, sorted and without duplicates. It
// treats the wildcard "*" like any other name, so the rules must not contain it.
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

// Requested contains the permissions that a tested program's requests needed in one run.
type Requested struct {
	// Permissions lists the permissions that the requests needed, sorted and without duplicates.
	// It includes the permissions for denied requests.
	Permissions []Permission `json:"rights"`
	// Refused describes the requests that the API server denied with status 403 (Forbidden). It
	// does not contain creates.
	//
	// After a restart, the API server denies all requests until it has loaded its RBAC roles.
	// Refused therefore omits a denied request if the API server allowed a later request for the
	// same object. The later request may have another verb, because a client may send a watch
	// after a denied list.
	Refused []string `json:"refused,omitempty"`
}

// RequestedIn returns the permissions that the requests in a history needed. It returns the
// first error of records.
func RequestedIn(records iter.Seq2[*history.Record, error]) (Requested, error) {
	var requested Requested
	requests := map[uint64]*history.Request{}
	var refusals []*history.Request // denied requests that no later allowed request has removed
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

// needed returns the permission that RBAC must grant for a request.
func needed(r *history.Request) Permission {
	resource, group, _ := strings.Cut(r.Resource, ".")
	return permission(r.Verb, resource, group, r.Subresource)
}

// refused reports whether the API server denied a request because a permission was missing.
//
// For creates, refused always returns false, because a quota or a terminating namespace also
// causes status 403. The permission for a denied create is nevertheless in Requested.Permissions.
func refused(request *history.Request, response *history.Response) bool {
	return response.ServerCode == http.StatusForbidden && request.Verb != "create"
}

// sameObject reports whether two requests are for the same object or the same collection.
//
// sameObject returns true for any two requests for Events. A client does not repeat a denied
// patch of an Event, so a later request for another Event must count instead.
func sameObject(a, b *history.Request) bool {
	if a.Resource != b.Resource || a.Subresource != b.Subresource {
		return false
	}
	resource, _, _ := strings.Cut(a.Resource, ".")
	return resource == "events" || a.Namespace == b.Namespace && a.Name == b.Name
}

// granted reports whether a response proves that RBAC allowed the request. The request may have
// failed for another reason, such as a conflict.
func granted(response *history.Response) bool {
	switch response.ServerCode {
	case 0, http.StatusUnauthorized, http.StatusForbidden:
		return false
	}
	return response.ServerCode < http.StatusInternalServerError
}

// describe returns a request as text, such as "subject-0: get pods default/web". It contains the
// replica, the permission and the object.
func describe(r *history.Request) string {
	return fmt.Sprintf("%s: %s %s/%s", r.Subject, needed(r), r.Namespace, r.Name)
}

// Without returns the given permissions without those that the slice others contains. For example,
// it returns the requested permissions that RBAC does not grant.
func Without(permissions, others []Permission) []Permission {
	return slices.DeleteFunc(slices.Clone(permissions), func(r Permission) bool { return slices.Contains(others, r) })
}
