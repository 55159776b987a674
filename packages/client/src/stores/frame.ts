/** Limit of the wait for a frame: a hidden page has none, but may show a count in its title. */
const MAX_WAIT_MS = 250

const waiting = new Set<() => void>()
let clock: unknown

/** Runs `task` once with the next frame, however often it is requested before. All tasks run in the same turn. */
export function onFrame(task: () => void): void {
  // A test that replaces the clock forgets what was scheduled with the one before.
  if (waiting.size === 0 || clock !== setTimeout) nextFrame(runAll)
  clock = setTimeout
  waiting.add(task)
}

function runAll(): void {
  const tasks = [...waiting]
  waiting.clear()
  for (const task of tasks) task()
}

function nextFrame(run: () => void): void {
  // Runtimes other than browsers have no frames.
  if (typeof requestAnimationFrame === 'undefined') {
    setTimeout(run)
    return
  }
  const frame = requestAnimationFrame(() => {
    clearTimeout(timer)
    run()
  })
  const timer = setTimeout(() => {
    cancelAnimationFrame(frame)
    run()
  }, MAX_WAIT_MS)
}
