// Loaded into a process by NODE_OPTIONS=--import: its clock is TEST_CLOCK_AHEAD_S seconds ahead, and every SIGUSR2 moves it on
// by TEST_CLOCK_STEP_S. Each time it says so on standard error. Timers and the monotonic clock stay as they are.
const TrueDate = globalThis.Date
const stepMs = Number(process.env.TEST_CLOCK_STEP_S) * 1_000
let aheadMs = Number(process.env.TEST_CLOCK_AHEAD_S) * 1_000

globalThis.Date = class MovedDate extends TrueDate {
  constructor(...args) {
    super(...(args.length === 0 ? [MovedDate.now()] : args))
  }

  static now() {
    return TrueDate.now() + aheadMs
  }
}

process.on('SIGUSR2', () => {
  aheadMs += stepMs
  process.stderr.write(`clock moved to ${aheadMs / 1_000} s ahead\n`)
})
