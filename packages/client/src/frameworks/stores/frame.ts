import { nextFrame } from '../../core/events/schedule.js'

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
