//! Runs the program under test and stops it at exact system calls: before each one with which the sweeping thread changes
//! something, a test may kill the program, let the call fail, or change the world first.
//!
//! It is what `strace --inject` does, with two differences. strace counts the calls of each thread from its start, and
//! whether they change anything or not, so that the n-th `openat2` or `write` would be another thread's; and strace
//! waits for no test. A filter in the kernel lets every other call run at full speed.

use std::ffi::c_void;
use std::fs::{File, read_link};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::libc;

/// A program that is not done by then hangs.
const DEADLINE: Duration = Duration::from_secs(180);

/// A changing call of the sweeping thread, before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// From 1, among these calls.
    pub number: usize,
    pub name: &'static str,
    /// What it is about; of a rename, what is renamed.
    pub path: PathBuf,
    /// Of a rename, the new name.
    pub to: Option<PathBuf>,
    /// `unlinkat` of a directory.
    pub directory: bool,
    /// The program, whose namespaces a test may want to enter.
    pub pid: i32,
}

impl Call {
    /// For messages.
    pub fn shown(&self) -> String {
        let to = self.to.as_ref().map(|to| format!(" -> {}", to.display())).unwrap_or_default();
        let what = if self.directory { "/" } else { "" };
        format!("{} {} {}{what}{to}", self.number, self.name, self.path.display())
    }

    /// A rename of `path`.
    pub fn renames(&self, path: &Path) -> bool {
        self.to.is_some() && self.path == path
    }

    /// The removal of something at or below `path`.
    pub fn removes_below(&self, path: &Path) -> bool {
        self.name == "unlinkat" && self.path.starts_with(path)
    }
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Go,
    /// It is not made, and answers this error.
    Fail(i32),
    /// The whole program is killed before it.
    Kill,
}

/// What a program left that ran to its end, or was killed.
#[derive(Debug)]
pub struct Traced {
    /// `None`: killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// All changing calls of the sweeping thread.
    pub calls: Vec<Call>,
    /// Those of other threads, which are there to ask and to report.
    pub elsewhere: Vec<Call>,
}

/// Whether the program finds Landlock in its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landlock {
    On,
    Off,
}

/// Which of a call's arguments say what it is about.
#[derive(Clone, Copy)]
enum About {
    /// A directory's handle and a name in it.
    At(usize, usize),
    Path(usize),
    Handle(usize),
    /// Two of the first kind.
    Both([usize; 4]),
    /// A handle, and a name if the open may make or empty a file: by the flags in this argument...
    Open(usize, usize, usize),
    /// ...or in the structure that it points to.
    OpenHow(usize, usize, usize),
    /// The first call of Landlock, with which a thread shows itself to be the sweeping one.
    Landlock,
}

/// Every system call that changes a file, a name or what is known of them.
const CALLS: &[(&str, libc::c_long, About)] = &[
    ("open", libc::SYS_open, About::Path(0)),
    ("creat", libc::SYS_creat, About::Path(0)),
    ("openat", libc::SYS_openat, About::Open(0, 1, 2)),
    ("openat2", libc::SYS_openat2, About::OpenHow(0, 1, 2)),
    ("write", libc::SYS_write, About::Handle(0)),
    ("pwrite64", libc::SYS_pwrite64, About::Handle(0)),
    ("writev", libc::SYS_writev, About::Handle(0)),
    ("pwritev", libc::SYS_pwritev, About::Handle(0)),
    ("pwritev2", libc::SYS_pwritev2, About::Handle(0)),
    ("sendfile", libc::SYS_sendfile, About::Handle(0)),
    ("copy_file_range", libc::SYS_copy_file_range, About::Handle(2)),
    ("ftruncate", libc::SYS_ftruncate, About::Handle(0)),
    ("truncate", libc::SYS_truncate, About::Path(0)),
    ("fallocate", libc::SYS_fallocate, About::Handle(0)),
    ("fsync", libc::SYS_fsync, About::Handle(0)),
    ("fdatasync", libc::SYS_fdatasync, About::Handle(0)),
    ("flock", libc::SYS_flock, About::Handle(0)),
    ("mkdir", libc::SYS_mkdir, About::Path(0)),
    ("mkdirat", libc::SYS_mkdirat, About::At(0, 1)),
    ("mknod", libc::SYS_mknod, About::Path(0)),
    ("mknodat", libc::SYS_mknodat, About::At(0, 1)),
    ("rename", libc::SYS_rename, About::Path(0)),
    ("renameat", libc::SYS_renameat, About::Both([0, 1, 2, 3])),
    ("renameat2", libc::SYS_renameat2, About::Both([0, 1, 2, 3])),
    ("link", libc::SYS_link, About::Path(1)),
    ("linkat", libc::SYS_linkat, About::Both([0, 1, 2, 3])),
    ("symlink", libc::SYS_symlink, About::Path(1)),
    ("symlinkat", libc::SYS_symlinkat, About::At(1, 2)),
    ("unlink", libc::SYS_unlink, About::Path(0)),
    ("rmdir", libc::SYS_rmdir, About::Path(0)),
    ("unlinkat", libc::SYS_unlinkat, About::At(0, 1)),
    ("chmod", libc::SYS_chmod, About::Path(0)),
    ("fchmod", libc::SYS_fchmod, About::Handle(0)),
    ("fchmodat", libc::SYS_fchmodat, About::At(0, 1)),
    ("fchmodat2", libc::SYS_fchmodat2, About::At(0, 1)),
    ("chown", libc::SYS_chown, About::Path(0)),
    ("lchown", libc::SYS_lchown, About::Path(0)),
    ("fchown", libc::SYS_fchown, About::Handle(0)),
    ("fchownat", libc::SYS_fchownat, About::At(0, 1)),
    ("utimensat", libc::SYS_utimensat, About::At(0, 1)),
    ("setxattr", libc::SYS_setxattr, About::Path(0)),
    ("lsetxattr", libc::SYS_lsetxattr, About::Path(0)),
    ("fsetxattr", libc::SYS_fsetxattr, About::Handle(0)),
    ("removexattr", libc::SYS_removexattr, About::Path(0)),
    ("mount", libc::SYS_mount, About::Path(1)),
    ("umount2", libc::SYS_umount2, About::Path(0)),
    ("landlock_create_ruleset", libc::SYS_landlock_create_ruleset, About::Landlock),
];

/// Flags of an open that may change something.
const OPENS_TO_CHANGE: u64 = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;

/// Runs `command`; `decide` is asked before each changing call of the sweeping thread, which waits for the answer.
pub fn run(command: Command, landlock: Landlock, decide: &mut (dyn FnMut(&Call) -> Act + Send)) -> Traced {
    // All requests must come from the thread that started the program, and no other child of this process is its.
    std::thread::scope(|scope| {
        let tracing = scope.spawn(|| Tracer::start(command, landlock).follow(decide));
        tracing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct Tracer {
    pid: i32,
    landlock: Landlock,
    sweeping: Option<i32>,
    output: [tempfile::NamedTempFile; 2],
    calls: Vec<Call>,
    elsewhere: Vec<Call>,
}

impl Tracer {
    fn start(mut command: Command, landlock: Landlock) -> Self {
        let output = [(); 2].map(|()| tempfile::NamedTempFile::new().expect("a file for output"));
        let [stdout, stderr] = output.each_ref().map(|f| f.reopen().expect("the same file"));
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let filter = filter();
        // SAFETY: between fork and exec only system calls are made; the filter was allocated before. It is waited for
        // by its number.
        #[allow(clippy::zombie_processes)]
        let child = unsafe { command.pre_exec(move || be_traced(&filter)).spawn() }.expect("program starts");
        let pid = i32::try_from(child.id()).expect("a process id");
        let status = wait(pid).expect("the program stops when it is loaded").1;
        assert!(libc::WIFSTOPPED(status), "the program did not start: {status:x}");
        // A command may lead to the program by way of another one, as `unshare` does.
        let options = libc::PTRACE_O_EXITKILL
            | libc::PTRACE_O_TRACEEXEC
            | libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACESECCOMP;
        request(libc::PTRACE_SETOPTIONS, pid, options as usize).expect("options of the trace");
        request(libc::PTRACE_CONT, pid, 0).expect("the program goes on");
        Self { pid, landlock, sweeping: None, output, calls: Vec::new(), elsewhere: Vec::new() }
    }

    fn follow(mut self, decide: &mut (dyn FnMut(&Call) -> Act + Send)) -> Traced {
        let pid = self.pid;
        let (done, waits) = channel::<()>();
        let watchdog = std::thread::spawn(move || {
            let hangs = waits.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout);
            if hangs {
                // SAFETY: the program was not waited for yet, so the number is its own.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            hangs
        });
        let status = loop {
            let (tid, status) = wait(-1).expect("the program ends");
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                if tid == pid {
                    break status;
                }
                continue;
            }
            // A thread that was killed meanwhile can't be continued.
            let _ = match status >> 8 {
                event if event == libc::SIGTRAP | (libc::PTRACE_EVENT_SECCOMP << 8) => {
                    self.stopped(tid, decide)
                }
                event if event >> 8 != 0 => request(libc::PTRACE_CONT, tid, 0),
                // How a new thread begins.
                libc::SIGSTOP => request(libc::PTRACE_CONT, tid, 0),
                signal => request(libc::PTRACE_CONT, tid, signal as usize),
            };
        };
        drop(done);
        assert!(!watchdog.join().expect("the watchdog ends"), "the program hangs; so far: {:#?}", self.calls);
        let [stdout, stderr] = self
            .output
            .each_ref()
            .map(|f| String::from_utf8_lossy(&std::fs::read(f.path()).expect("its output")).into_owned());
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        Traced { code, stdout, stderr, calls: self.calls, elsewhere: self.elsewhere }
    }

    /// The thread is about to make one of the calls that the filter knows.
    fn stopped(&mut self, tid: i32, decide: &mut (dyn FnMut(&Call) -> Act + Send)) -> io::Result<()> {
        let mut registers = registers(tid)?;
        let number = registers.orig_rax as libc::c_long;
        let (name, _, about) = CALLS.iter().find(|(_, n, _)| *n == number).expect("a call of the filter");
        let arguments =
            [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        let mut act = Act::Go;
        if let About::Landlock = about {
            self.sweeping.get_or_insert(tid);
            if self.landlock == Landlock::Off {
                act = Act::Fail(libc::ENOSYS);
            }
        } else if let Some((path, to)) = subject(tid, *about, &arguments) {
            let directory = *name == "rmdir" || *name == "unlinkat" && arguments[2] != 0;
            let sweeping = self.sweeping == Some(tid);
            let list = if sweeping { &mut self.calls } else { &mut self.elsewhere };
            let call = Call { number: list.len() + 1, name, path, to, directory, pid: self.pid };
            list.push(call.clone());
            if sweeping {
                act = decide(&call);
            }
        }
        match act {
            Act::Go => {}
            Act::Fail(errno) => {
                registers.orig_rax = u64::MAX;
                registers.rax = (-i64::from(errno)) as u64;
                set_registers(tid, &registers)?;
            }
            // SAFETY: the program is stopped, so the number is its own.
            Act::Kill => drop(unsafe { libc::kill(self.pid, libc::SIGKILL) }),
        }
        request(libc::PTRACE_CONT, tid, 0)
    }
}

/// What the call is about; `None` if it changes no file.
fn subject(tid: i32, about: About, arguments: &[u64; 6]) -> Option<(PathBuf, Option<PathBuf>)> {
    let at = |dir: usize, name: usize| {
        let name = text(tid, arguments[name]);
        if name.is_absolute() { name } else { handle(tid, arguments[dir]).join(name) }
    };
    match about {
        About::At(dir, name) => Some((at(dir, name), None)),
        About::Path(name) => Some((text(tid, arguments[name]), None)),
        About::Both([dir, name, to_dir, to_name]) => Some((at(dir, name), Some(at(to_dir, to_name)))),
        About::Handle(fd) => {
            // Not a pipe, a terminal or a counter.
            let meta = std::fs::metadata(format!("/proc/{tid}/fd/{}", arguments[fd] as i32)).ok()?;
            (meta.is_file() || meta.is_dir()).then(|| (handle(tid, arguments[fd]), None))
        }
        About::Open(dir, name, flags) => {
            (arguments[flags] & OPENS_TO_CHANGE != 0).then(|| (at(dir, name), None))
        }
        About::OpenHow(dir, name, how) => {
            let flags = u64::from_ne_bytes(memory(tid, arguments[how], 8).try_into().ok()?);
            (flags & OPENS_TO_CHANGE != 0).then(|| (at(dir, name), None))
        }
        About::Landlock => None,
    }
}

/// Where the handle leads now.
fn handle(tid: i32, fd: u64) -> PathBuf {
    let link = match fd as i32 {
        libc::AT_FDCWD => format!("/proc/{tid}/cwd"),
        fd => format!("/proc/{tid}/fd/{fd}"),
    };
    read_link(link).unwrap_or_default()
}

fn text(tid: i32, address: u64) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = memory(tid, address, libc::PATH_MAX as usize);
    bytes.truncate(bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()));
    std::ffi::OsString::from_vec(bytes).into()
}

/// Up to `length` bytes; less where the memory ends.
fn memory(tid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let file = File::open(format!("/proc/{tid}/mem")).expect("the memory of a stopped thread");
    let read = file.read_at(&mut bytes, address).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

fn wait(pid: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is ours.
        let found = unsafe { libc::waitpid(pid, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        match found {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            found => return Ok((found, status)),
        }
    }
}

fn request(request: u32, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: these requests take a number and write nothing here.
    match unsafe { libc::ptrace(request, tid, std::ptr::null_mut::<c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn registers(tid: i32) -> io::Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::uninit();
    // SAFETY: the kernel fills the structure, whose type it is.
    match unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0usize, registers.as_mut_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(unsafe { registers.assume_init() }),
    }
}

fn set_registers(tid: i32, registers: &libc::user_regs_struct) -> io::Result<()> {
    // SAFETY: the kernel reads the structure, whose type it is.
    match unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0usize, registers) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Where the number of the call and the lower half of an argument stand in what a filter sees.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn argument(n: usize) -> u32 {
    16 + 8 * n as u32
}

/// The program of the kernel's filter: stop at the calls of the table, an `openat` only if its flags may change.
fn filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const IF_ANY_BIT: u16 = 0x45;
    const ANSWER: u16 = 0x06;
    const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let answer = |k| step(ANSWER, k, 0, 0);
    let mut program = vec![
        step(LOAD, ARCH, 0, 0),
        step(IF_EQUAL, AUDIT_ARCH_X86_64, 1, 0),
        answer(libc::SECCOMP_RET_ALLOW),
        step(LOAD, NUMBER, 0, 0),
    ];
    for (_, number, about) in CALLS {
        let number = u32::try_from(*number).expect("a small number");
        if let About::Open(_, _, flags) = about {
            program.extend([
                step(IF_EQUAL, number, 0, 4),
                step(LOAD, argument(*flags), 0, 0),
                step(IF_ANY_BIT, OPENS_TO_CHANGE as u32, 0, 1),
                answer(libc::SECCOMP_RET_TRACE),
                answer(libc::SECCOMP_RET_ALLOW),
            ]);
        } else {
            program.extend([step(IF_EQUAL, number, 0, 1), answer(libc::SECCOMP_RET_TRACE)]);
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

fn be_traced(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let checked = |result: libc::c_long| if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: plain numbers, and a program that outlives the call.
    unsafe {
        checked(libc::ptrace(libc::PTRACE_TRACEME, 0, 0usize, 0usize))?;
        checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        checked(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program).into())
    }
}
