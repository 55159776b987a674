// `npm run bench:guard`: plays this checkout against another commit, in turns, names what is over 3 % worse beyond the
// noise and fails then, and prints this checkout's ratios to uws and raw. `npm run bench:guard -- --base v1.2.0 --quick`; see --help.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../../../scripts/lib/build.mjs'
import { builtCommit, git, ownEnvironment } from '../../../scripts/lib/built-commit.mjs'
import { must, print, ROOT, runScript, StepError, step } from '../../../scripts/lib/steps.mjs'

const HELP = `Plays this checkout against another commit in turns, and compares medians.

  --base <ref>     the other commit (default: where this branch left main; on main, the commit before)
  --quick          three rounds of short windows: about 35 minutes after the builds, else about 100
  --rounds <n>     rounds (default: 3 with --quick, else 5); the first side changes every round
  --rows <names>   only these rows, such as fan-out,ping
  --noise <n>      percent that are always noise (default: 3)

Rows: fan-out-10, fan-out-100, fan-out, paced, messages, messages-64k, connects, logins, ping-1, ping, two-nodes, logged-redis,
logged-nats, logged-rabbitmq, everyday-rabbitmq, everyday-redis, everyday-nats, everyday-memory, seed-100x1, seed-300x4,
seed-400x4 (clients x nodes over RabbitMQ), seed-100x1-redis, seed-300x4-redis, seed-400x4-redis, overload (twice what Redis can
take), overload-freeze (and Redis stands still for 3 s), history. The base is built once per commit, by its own scripts, in
.cache/bench-guard.
"Beside peers" is this checkout divided by uws, raw and the server by hand of the same runs. A row whose verdict voids a
figure has "no figure" for it. Exit code 3: something is worse beyond the noise; the last lines name it.`

/** Less is not worth reporting, and a band of repeats is wider on most machines. */
const NOISE_PERCENT = 3
/** A run that takes longer is broken: the longest takes half a minute. */
const RUN_TIMEOUT_S = 180
const WORSE = 3
const SECONDS = { quick: ['--duration', '1'], long: ['--duration', '3'] }
const MEASURED = 'webmq-native'

/** What a logged message costs the two nodes of a broker. This checkout's script plays both commits. */
const logged = (broker) => ({
  script: path.join('packages', 'bench', 'figures', 'logged.mjs'),
  args: ['--broker', broker],
  quick: ['--seconds', '2'],
  long: ['--seconds', '5'],
  figures: ['publisherCpuUs', 'followerCpuUs'],
})

/** Everyday traffic over one broker. This checkout's bench and load generator play the servers of both commits. */
const everyday = (broker, clients, backends, { figures, peers }) => ({
  script: path.join('packages', 'bench', 'benchmark.js'),
  args: [
    ...['--scenario', 'everyday', '--brokers', broker, '--clients', String(clients), '--backends', String(backends)],
    ...['--repeat', '1', '--no-progress'],
  ],
  quick: ['--duration', '2', '--warmup', '1'],
  long: ['--duration', '8'],
  figures,
  peers,
})
const COST = { figures: ['serverCpuUsPerDelivery'], peers: ['by-hand'] }
/** Publishers before a slow Redis. This checkout's bench plays servers and clients of both commits. */
const overload = (load, fault) => ({
  script: path.join('packages', 'bench', 'benchmark.js'),
  args: ['--scenario', 'overload', '--broker', 'redis', '--loads', String(load), '--faults', fault, '--no-progress'],
  quick: ['--settle', '2', '--window', '3'],
  long: [],
})
/** `deliveriesPerSecond` counts what came within the window: the goodput. */
const SERVICE = { figures: ['latencyMs.p99', 'deliveriesPerSecond'], peers: [] }

/**
 * What each row plays, short and long, and the figures that count. Both commits know these flags. This checkout plays the
 * `peers` too, in the same run. A row without targets has none.
 */
const ROWS = {
  'fan-out-10': floodTo(10),
  'fan-out-100': floodTo(100),
  'fan-out': floodTo(1_000),
  paced: {
    args: ['--scenario', 'paced', '--tiers', '1000', '--rate', '100', '--warmup', '0.5'],
    quick: ['--duration', '2'],
    long: ['--duration', '5'],
    figures: ['serverCpuShare', 'latencyMs.p99'],
    peers: ['uws'],
  },
  messages: {
    args: ['--scenario', 'throughput', '--tiers', '100', '--warmup', '0.5'],
    ...SECONDS,
    figures: ['receivedPerServerCpuSecond'],
    peers: ['uws'],
  },
  'messages-64k': {
    args: ['--scenario', 'matrix', '--tiers', '100', '--payloads', '65536', '--warmup', '0.5'],
    ...SECONDS,
    figures: ['receivedPerServerCpuSecond'],
    peers: ['uws'],
  },
  connects: stormWith('none'),
  logins: stormWith('jwt'),
  'ping-1': {
    args: ['--scenario', 'ping', '--tiers', '1'],
    quick: ['--pings', '5000'],
    long: ['--pings', '20000'],
    figures: ['pingsPerServerCpuSecond', 'latencyMs.p50'],
    peers: ['uws'],
  },
  ping: {
    args: ['--scenario', 'ping', '--tiers', '100'],
    quick: ['--pings', '50'],
    long: ['--pings', '200'],
    figures: ['pingsPerServerCpuSecond', 'latencyMs.p50'],
    peers: ['uws'],
  },
  'two-nodes': {
    args: ['--scenario', 'fanout', '--mode', 'redis', '--tiers', '100', '--warmup', '0.5'],
    ...SECONDS,
    figures: ['deliveriesPerTotalCpuSecond'],
    peers: [],
  },
  'logged-redis': logged('redis'),
  'logged-nats': logged('nats'),
  'logged-rabbitmq': logged('rabbitmq'),
  'everyday-rabbitmq': everyday('rabbitmq', 400, 4, COST),
  'everyday-redis': everyday('redis', 400, 4, COST),
  'everyday-nats': everyday('nats', 400, 4, COST),
  'everyday-memory': everyday('memory', 400, 1, COST),
  'seed-100x1': everyday('rabbitmq', 100, 1, SERVICE),
  'seed-300x4': everyday('rabbitmq', 300, 4, SERVICE),
  'seed-400x4': everyday('rabbitmq', 400, 4, SERVICE),
  'seed-100x1-redis': everyday('redis', 100, 1, SERVICE),
  'seed-300x4-redis': everyday('redis', 300, 4, SERVICE),
  'seed-400x4-redis': everyday('redis', 400, 4, SERVICE),
  overload: { ...overload(2, 'none'), figures: ['goodput', 'latencyMs.p99'] },
  'overload-freeze': { ...overload(0.7, 'freeze'), where: { fault: 'freeze' }, figures: ['normalMs', 'latencyMs.p99'] },
  history: {
    args: ['--scenario', 'history', '--rounds', '1'],
    quick: ['--users', '300', '--duration', '8'],
    long: ['--users', '800', '--duration', '20'],
    figures: ['serverCpuSeconds', 'historyMs.p95', 'broadcastMs.p95'],
  },
}

function floodTo(connections) {
  return {
    args: ['--scenario', 'fanout', '--tiers', String(connections), '--warmup', '0.5'],
    ...SECONDS,
    figures: ['deliveriesPerServerCpuSecond'],
    peers: ['uws', 'raw'],
  }
}

function stormWith(auth) {
  return {
    args: ['--scenario', 'storm', '--auth', auth],
    quick: ['--tiers', '2000'],
    long: ['--tiers', '5000'],
    figures: ['connectsPerServerCpuSecond'],
    peers: ['uws'],
  }
}

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    rows: { type: 'string' },
    noise: { type: 'string', default: String(NOISE_PERCENT) },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) print(HELP)
else await runScript(guard)

async function guard() {
  const names = values.rows?.split(',') ?? Object.keys(ROWS)
  const unknown = names.find((name) => !Object.hasOwn(ROWS, name))
  if (unknown !== undefined)
    throw new StepError(`there is no row '${unknown}'; there are ${Object.keys(ROWS).join(', ')}`)
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 5))
  if (!Number.isInteger(rounds) || rounds < 1) throw new StepError('--rounds must be a whole number above 0')
  const base = await baseCommit()
  const folder = await builtCommit(base, 'bench-guard')
  await build()
  const sides = [
    { name: `base ${base.slice(0, 10)}`, root: folder },
    { name: 'this', root: ROOT },
  ]
  for (const { name, root } of sides) await step(`Preparing the load generator of ${name}`, () => prepare(root))
  const results = mkdtempSync(path.join(tmpdir(), 'webmq-guard-'))
  try {
    const records = await play(names, rounds, sides, results)
    // Of the bench that is built now.
    const { guardReport } = await import('./report.mjs')
    const rows = names.map((name) => {
      const { figures, peers, where } = ROWS[name]
      return { name, figures, peers, where, target: MEASURED, records: records.get(name) }
    })
    const { text, isWorse, unmeasured } = guardReport(rows, { sides, leastChange: Number(values.noise) / 100 })
    print(text)
    if (isWorse) process.exitCode = WORSE
    if (unmeasured.length > 0) throw new StepError(`Not measured at both sides: ${unmeasured.join('; ')}`)
  } finally {
    rmSync(results, { recursive: true })
  }
}

/** The commit to compare with. */
async function baseCommit() {
  if (values.base !== undefined) return await git('rev-parse', '--verify', `${values.base}^{commit}`)
  const head = await git('rev-parse', 'HEAD')
  const fork = await git('merge-base', 'HEAD', 'main')
  return fork === head ? await git('rev-parse', 'HEAD~1') : fork
}

/** The first run of a checkout builds its load generator. */
async function prepare(root) {
  const args = ['--scenario', 'ping', '--target', 'webmq-native', '--tiers', '1', '--pings', '1', '--repeat', '1']
  await must('The bench does not run.', process.execPath, [benchOf(root), ...args], {
    log: 'guard-prepare',
    cwd: root,
    env: ownEnvironment(),
  })
}

function benchOf(root) {
  return path.join(root, 'packages', 'bench', 'benchmark.js')
}

/** Every row in every round, the sides in turns. @returns records by row and side. */
async function play(names, rounds, sides, results) {
  const records = new Map(names.map((name) => [name, sides.map(() => [])]))
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const { script, args, quick, long, peers } = ROWS[name]
      await step(`Round ${round + 1} of ${rounds}: ${name}`, async () => {
        for (const place of round % 2 === 0 ? [0, 1] : [1, 0]) {
          const file = path.join(results, `${name}-${place}-${round}.json`)
          // Only this checkout's figures stand beside those of peers.
          const targets = [MEASURED, ...(place === 1 ? (peers ?? []) : [])].join(',')
          const target = peers === undefined ? [] : ['--target', targets]
          const { name: side, root } = sides[place]
          const flags = [...args, ...target, ...(values.quick ? quick : long), '--json', file]
          const program =
            script === undefined
              ? [benchOf(root), ...flags, '--repeat', '1', '--no-progress']
              : [path.join(ROOT, script), ...flags, '--root', root]
          const command = [String(RUN_TIMEOUT_S), process.execPath, ...program]
          await must(`${name} failed at ${side}.`, 'timeout', command, {
            log: `guard-${name}`,
            cwd: root,
            env: ownEnvironment(),
          })
          records.get(name)[place].push(JSON.parse(readFileSync(file, 'utf8')))
        }
      })
    }
  }
  return records
}
