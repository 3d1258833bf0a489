// std::process of Rust; the tasks are those of driver.hpp.
use std::io::{BufRead, Write};
use std::process::{Child, Command};
use std::time::Instant;

fn many() {
    let start = |_| Command::new("/bin/true").spawn().expect("start");
    let all: Vec<Child> = (0..200).map(start).collect();
    for mut one in all {
        assert!(one.wait().expect("wait").success());
    }
}

fn main() {
    let mut held: Vec<Vec<u8>> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (task, count) = line.split_once(' ').expect("two words");
        let count: usize = count.parse().expect("a number");
        let begin = Instant::now();
        if task == "hold" {
            held.push(vec![1; count << 20]);
        }
        for _ in 0..count {
            match task {
                "run" => assert!(Command::new("/bin/true").status().expect("run").success()),
                "capture" => {
                    let output = Command::new("/bin/echo").arg("hello").output().expect("run");
                    assert!(output.stdout == b"hello\n");
                }
                "many" => many(),
                _ => break,
            }
        }
        println!("{:.3}", begin.elapsed().as_secs_f64() * 1e6 / count as f64);
        std::io::stdout().flush().expect("flush");
    }
}
