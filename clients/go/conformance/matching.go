package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
)

const near = 1e-6

// rules are what may stand in place of a value.
var rules map[string]func(expected, got any) bool

func init() { // contains matches in turn
	rules = map[string]func(expected, got any) bool{
		"$any":      func(_, got any) bool { return got != nil },
		"$absent":   func(_, got any) bool { return got == nil },
		"$contains": contains,
		"$matches":  matches,
		"$at_least": atLeast,
		"$length":   hasLength,
		"$golden":   isGolden,
	}
}

// match says why they do not match, with the place; nil where they do. A value that is not there is nil.
func match(expected, got any, where string) error {
	switch expected := expected.(type) {
	case map[string]any:
		return matchObject(expected, got, where)
	case []any:
		several, is := got.([]any)
		if !is || len(several) != len(expected) {
			return differ(expected, got, where)
		}
		for at := range expected {
			if err := match(expected[at], several[at], fmt.Sprintf("%s[%d]", where, at)); err != nil {
				return err
			}
		}
		return nil
	case float64:
		if number, is := got.(float64); is && math.Abs(number-expected) <= near {
			return nil
		}
		return differ(expected, got, where)
	}
	if expected != got {
		return differ(expected, got, where)
	}
	return nil
}

func matchObject(expected map[string]any, got any, where string) error {
	for key, value := range expected {
		if rule, is := rules[key]; is {
			if rule(value, got) {
				return nil
			}
			return differ(expected, got, where)
		}
	}
	object, is := got.(map[string]any)
	if !is {
		return differ(expected, got, where)
	}
	for key, value := range expected {
		if err := match(value, object[key], where+"."+key); err != nil {
			return err
		}
	}
	return nil
}

func differ(expected, got any, where string) error {
	if where == "" {
		where = "reply"
	}
	wanted, _ := json.Marshal(expected)
	came, _ := json.Marshal(got)
	return fmt.Errorf("%s: expected %s, got %s", strings.TrimPrefix(where, "."), wanted, came)
}

func contains(expected, got any) bool {
	switch got := got.(type) {
	case []any:
		for _, each := range got {
			if match(expected, each, "") == nil {
				return true
			}
		}
	case string:
		part, is := expected.(string)
		return is && strings.Contains(got, part)
	}
	return false
}

func matches(expected, got any) bool {
	text, is := got.(string)
	return is && regexp.MustCompile(expected.(string)).MatchString(text)
}

func atLeast(expected, got any) bool {
	least, _ := strconv.ParseFloat(plain(expected), 64)
	number, err := strconv.ParseFloat(plain(got), 64)
	return err == nil && number >= least
}

func hasLength(expected, got any) bool {
	length, _ := expected.(float64)
	switch got := got.(type) {
	case []any:
		return len(got) == int(length)
	case string:
		return len([]rune(got)) == int(length)
	}
	return false
}

// isGolden compares with a file, by its whole path.
func isGolden(expected, got any) bool {
	text, err := os.ReadFile(expected.(string))
	return err == nil && got == string(text)
}
