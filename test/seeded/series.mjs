// Plays schedules with a bundle of bundle.ts:
// node series.mjs <bundle> <broker> <theme> <first seed> <count> [first | <max seconds>]
// Each violation is a line of JSON; with `first` it ends behind the first schedule that has one. The last line sums up.
import { pathToFileURL } from 'node:url'

const [bundle = '', broker = '', theme = 'anything', first = '1', count = '1', mode] = process.argv.slice(2)
const { playSeed } = await import(pathToFileURL(bundle).href)
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
const maxMs = 1_000 * (Number(mode) || Number.POSITIVE_INFINITY)
const beganAtMs = performance.now()
let playedCount = 0
let violationCount = 0
for (let seed = Number(first); playedCount < Number(count) && performance.now() - beganAtMs < maxMs; seed++) {
  const { violations, record } = await playSeed(seed, broker, theme).catch((error) => ({
    violations: [{ rule: 'play', text: String(error?.stack ?? error) }],
    record: { faults: [] },
  }))
  playedCount++
  if (violations.length === 0) continue
  violationCount++
  say({
    seed,
    faults: record.faults.map(({ name, fromMs }) => `${Math.round(fromMs)} ms ${name}`),
    violations: violations.slice(0, 3),
  })
  if (mode === 'first') break
}
const { user, system } = process.cpuUsage()
say({
  broker,
  theme,
  firstSeed: Number(first),
  playedCount,
  violationCount,
  perHour: Math.round((playedCount * 3_600_000) / (performance.now() - beganAtMs)),
  perHourOfCpu: Math.round((playedCount * 3_600_000_000) / (user + system)),
})
process.exit(0)
