package check

import (
	"testing"
	"time"
)

func TestShutOut(t *testing.T) {
	// deployed makes a Deployment, and asks so often for its ReplicaSet, refused each
	// time, with or without news of it in between.
	deployed := func(tries int, news bool) func(*story) {
		return func(s *story) {
			s.deployment("web", 3, nil)
			s.list(setResource)
			s.wait(2 * time.Second)
			retry(s, tries, 5*time.Millisecond, 2, func() {
				s.make("web", "v1", 3).shutOut()
				if news {
					s.deliver(s.revise("web", "metadata", fields{"x": s.version}))
				}
			})
		}
	}
	judge(t, "terminating-namespace", []tale{
		{name: "each pod is refused once", want: Pass, tell: func(s *story) {
			rs := told(s, 5)
			for _, batch := range []int{1, 2, 2} {
				for _, a := range s.creates(rs, batch) {
					a.shutOut()
				}
			}
		}},
		{name: "refused, and tried again (R21)", want: Fail, says: "was refused 6 times because the namespace is being deleted", tell: func(s *story) {
			rs := told(s, 5)
			retry(s, 6, 5*time.Millisecond, 2, func() { s.create(rs).shutOut() })
		}},
		{name: "refused for another reason", want: NotExercised, tell: func(s *story) {
			rs := told(s, 5)
			retry(s, 8, 5*time.Millisecond, 2, func() { s.create(rs).answered(403) })
		}},
		{name: "another life begins anew", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			s.creates(rs, 1)[0].shutOut()
			s.restart("subject-0")
			rs = told(s, 2)
			s.creates(rs, 1)[0].shutOut()
			for _, a := range s.creates(rs, 1) {
				a.shutOut()
			}
		}},
		{name: "it may think that they were lost after five minutes", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).shutOut()
			s.wait(6 * time.Minute)
			s.create(rs).shutOut()
		}},
		{name: "a pod that it did not know of comes for one that was refused", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.create(rs).shutOut()
			s.deliver(s.pod(rs, "web"))
			s.create(rs).shutOut()
		}},
		{name: "a ReplicaSet is tried again at news", want: Pass, tell: deployed(9, true)},
		{name: "a ReplicaSet is tried again without", want: Fail, says: "Deployment ns/web", tell: deployed(9, false)},
		{name: "Endpoints are tried again without", want: Fail, says: "Service ns/web", tell: func(s *story) {
			s.service("web", nil)
			s.list(endpointsResource)
			s.wait(2 * time.Second)
			retry(s, 9, 5*time.Millisecond, 2, func() { s.writeEndpoints("create", "web").shutOut() })
		}},
	})
}
