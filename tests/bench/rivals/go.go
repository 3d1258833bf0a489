// os/exec of Go; the tasks are those of driver.hpp.
package main

import (
	"fmt"
	"os/exec"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func many() {
	var all []*exec.Cmd
	for i := 0; i < 200; i++ {
		one := exec.Command("/bin/true")
		check(one.Start())
		all = append(all, one)
	}
	for _, one := range all {
		check(one.Wait())
	}
}

func main() {
	var held [][]byte
	for {
		var task string
		var count int
		if _, err := fmt.Scan(&task, &count); err != nil {
			return
		}
		begin := time.Now()
		if task == "hold" {
			memory := make([]byte, count<<20)
			for i := 0; i < len(memory); i += 4096 {
				memory[i] = 1
			}
			held = append(held, memory)
		}
		for i := 0; i < count; i++ {
			switch task {
			case "run":
				check(exec.Command("/bin/true").Run())
			case "capture":
				text, err := exec.Command("/bin/echo", "hello").Output()
				check(err)
				if string(text) != "hello\n" {
					panic(text)
				}
			case "many":
				many()
			}
		}
		fmt.Printf("%.3f\n", float64(time.Since(begin).Nanoseconds())/1e3/float64(count))
	}
}
