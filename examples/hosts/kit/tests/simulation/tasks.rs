//! Futures that are polled by hand, in the order in which they are woken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The futures of all processes.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: Vec<Option<Task>>,
    ready: Arc<Mutex<VecDeque<usize>>>,
    spawner: Spawner,
    /// What is ready of processes that stand still.
    still: BTreeMap<usize, Vec<usize>>,
    dead: BTreeSet<usize>,
}

struct Task {
    process: usize,
    work: Work,
    waker: Waker,
}

/// Adds futures.
#[derive(Clone, Default)]
pub(crate) struct Spawner(Arc<Mutex<Vec<(usize, Work)>>>);

impl Spawner {
    pub(crate) fn spawn(&self, process: usize, work: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().unwrap().push((process, Box::pin(work)));
    }
}

struct Woken {
    task: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.task);
    }
}

impl Tasks {
    pub(crate) fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Polls the next one that is ready. `false`: none is.
    pub(crate) fn step(&mut self) -> bool {
        let new = std::mem::take(&mut *self.spawner.0.lock().unwrap());
        for (process, work) in new {
            if self.dead.contains(&process) {
                continue;
            }
            let task = self.slots.len();
            let waker = Waker::from(Arc::new(Woken { task, ready: Arc::clone(&self.ready) }));
            self.slots.push(Some(Task { process, work, waker }));
            self.ready.lock().unwrap().push_back(task);
        }
        let Some(id) = self.ready.lock().unwrap().pop_front() else { return false };
        let Some(task) = &mut self.slots[id] else { return true };
        if let Some(still) = self.still.get_mut(&task.process) {
            still.push(id);
            return true;
        }
        let waker = task.waker.clone();
        if task.work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.slots[id] = None;
        }
        true
    }

    /// Ends a process: what it was at is gone.
    pub(crate) fn kill(&mut self, process: usize) {
        self.dead.insert(process);
        self.still.remove(&process);
        let own = |task: &Option<Task>| task.as_ref().is_some_and(|task| task.process == process);
        for slot in self.slots.iter_mut().filter(|slot| own(slot)) {
            *slot = None;
        }
    }

    /// Has a process stand still.
    pub(crate) fn stop(&mut self, process: usize) {
        self.still.entry(process).or_default();
    }

    /// Has a process that stood still go on.
    pub(crate) fn go_on(&mut self, process: usize) {
        let waiting = self.still.remove(&process).unwrap_or_default();
        self.ready.lock().unwrap().extend(waiting);
    }
}
