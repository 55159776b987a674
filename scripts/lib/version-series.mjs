// `npm run test:all -- --brokers all`: plays the tests of a broker and the checker on each of its versions.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { build } from './build.mjs'
import { runVitest } from './runners.mjs'
import { must, print, ROOT, run, StepError, step } from './steps.mjs'
import { keyOf, readRows, writeRow } from './version-rows.mjs'

export const HELP = `npm run test:all -- --brokers <names>   plays tests and checker on versions of brokers, and writes docs/versions.json

  --brokers <names>     all, or some of them: redis@8.0,valkey@8.1,nats@2.14,nats@newest,rabbitmq@system; a broker without
                        a version means all of its versions
  --node <major>        with this Node.js, from the npm registry; default: the one that runs this
  --schedules <n>       of the checker, for each theme; default: 50
  --seconds <n>         length of a schedule; default: 20
  --parallel <n>        schedules that are played at the same time; default: 4
  --minutes <n>         begins no version after this time; default: no limit
  --again               also versions that were played at this commit, with as many schedules

Each version is a row, written when it has ended, so that a run goes on where another one was ended. On two cores a
version takes about two hours, five minutes with --schedules 1 --seconds 12.`

const NAMES = { rabbitmq: 'RabbitMQ', redis: 'Redis', valkey: 'Valkey', nats: 'NATS' }
const BROKER_TESTS = path.join('packages', 'server', 'test', 'brokers')
/** Of one broker, or of what is none. The other files of that folder play several. */
const OF_ONE = /rabbitmq|redis|nats|mesh|outbox/
const CHECKER_RESULT = path.join(ROOT, '.cache', 'checker.json')

/**
 * @param {{ brokers: string, node?: string, schedules: string, seconds: string, parallel: string, minutes?: string, again: boolean }} values
 * @throws {StepError} when a test failed, or the checker found a violation.
 */
export async function playVersions({ brokers, node, again, minutes = 'Infinity', ...checks }) {
  // The addon is that of the users, not that of the Rust tests.
  await build()
  const commit = commitOfCode()
  const program = node === undefined ? process.execPath : await fetchNode(node)
  const nodeVersion = execFileSync(program, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
  checkAddon(program, nodeVersion)
  const endMs = Date.now() + Number(minutes) * 60_000
  const wrong = []
  for (const { kind, version } of await versionsOf(brokers)) {
    const found = await obtain(kind, version)
    if (found === undefined) continue
    const row = { ...found, node: nodeVersion }
    const before = readRows().find((other) => keyOf(other) === keyOf(row))
    const isPlayed = before?.commit === commit && before.checker.schedules >= countOf(before.checker, checks.schedules)
    if (isPlayed && !again) {
      print(`${keyOf(row)} was played at ${commit}: --again plays it once more`)
      continue
    }
    if (Date.now() > endMs) {
      print(`${keyOf(row)}: no time left${before ? ` for its ${minutesText(before.seconds)}` : ''}`)
      continue
    }
    const played = await step(`Playing ${keyOf(row)}`, () => playVersion({ kind, version, program, checks }))
    const date = new Date().toISOString().slice(0, 10)
    writeRow({ ...row, date, commit, ...played })
    print(`${keyOf(row)} took ${minutesText(played.seconds)}`)
    const { tests, checker } = played
    if (tests.failed > 0) wrong.push(`${keyOf(row)}: ${tests.failed} tests failed`)
    if (checker.violations > 0) wrong.push(`${keyOf(row)}: violations of seeds ${checker.failedSeeds.join(', ')}`)
  }
  await must('The tables were not written.', process.execPath, ['scripts/versions-docs.mjs'], { log: 'versions-docs' })
  if (wrong.length > 0) throw new StepError(wrong.join('\n'))
}

function countOf({ themes }, perTheme) {
  return themes * Number(perTheme)
}

/** All versions that are asked for: those that can be fetched, and the system's. */
async function versionsOf(text) {
  const { BROKER_VERSIONS } = await import('webmq-services')
  const all = ['rabbitmq', 'redis', 'nats'].flatMap((kind) => [
    { kind, version: 'system', name: kind },
    ...BROKER_VERSIONS.filter((row) => row.kind === kind).map(({ version }) => {
      const isValkey = version.startsWith('valkey-')
      return { kind, version, name: isValkey ? 'valkey' : kind }
    }),
  ])
  if (text === 'all') return all
  return text.split(',').flatMap((asked) => {
    const [name, number] = asked.split('@')
    const chosen = all.filter((row) => row.name === name && isAsked(row.version.replace('valkey-', ''), number))
    if (chosen.length === 0)
      throw new StepError(
        `there is no ${asked}; there are ${all.map((row) => `${row.name}@${row.version.replace('valkey-', '')}`).join(', ')}`,
      )
    return chosen
  })
}

function isAsked(version, number) {
  return number === undefined || version === number || version.startsWith(`${number}.`)
}

/** Broker and exact version; `undefined` where it cannot be had, with a line that says why. */
async function obtain(kind, version) {
  const { obtainService } = await import('webmq-services')
  try {
    const { version: number = version } = await obtainService(kind, version)
    const isValkey = number.startsWith('valkey-')
    return { broker: NAMES[isValkey ? 'valkey' : kind], version: number.replace('valkey-', '') }
  } catch (error) {
    if (error.name !== 'ServiceError') throw error
    print(`${NAMES[kind]} ${version} is left out: ${error.message}`)
    return undefined
  }
}

async function playVersion({ kind, version, program, checks }) {
  const startedAtMs = performance.now()
  const env = {
    ...process.env,
    [`WEBMQ_TEST_${kind.toUpperCase()}_VERSION`]: version,
    // What tests start is of the same Node.
    ...(program !== process.execPath && { PATH: [path.dirname(program), process.env.PATH].join(path.delimiter) }),
  }
  const counts = [
    await runVitest(env, filesOf(kind)),
    await runVitest(env, [...filesOfSeveral(), '-t', `${kind}|${NAMES[kind]}`]),
  ]
  const sum = (field) => counts.reduce((total, count) => total + count[field], 0)
  const failures = counts.flatMap(({ output }) => output.split('\n').filter((line) => line !== ''))
  const tests = { passed: sum('passed'), failed: sum('failed'), skipped: counts[0].skipped, failures }
  const checker = await runChecker({ kind, program, env, ...checks })
  return { seconds: Math.round((performance.now() - startedAtMs) / 1_000), tests, checker }
}

/** Suites, faults, log, histories and streams of one broker. */
function filesOf(kind) {
  const own = readdirSync(path.join(ROOT, BROKER_TESTS)).filter(
    (name) => name.includes(kind) && name.endsWith('.test.ts'),
  )
  return [
    ...own.map((name) => path.join(BROKER_TESTS, name)),
    `test/history/${kind}.test.ts`,
    `test/streams/${kind}.test.ts`,
  ]
}

function filesOfSeveral() {
  return readdirSync(path.join(ROOT, BROKER_TESTS))
    .filter((name) => name.endsWith('.test.ts') && !OF_ONE.test(name))
    .map((name) => path.join(BROKER_TESTS, name))
}

async function runChecker({ kind, program, env, schedules, seconds, parallel }) {
  rmSync(CHECKER_RESULT, { force: true })
  const args = ['--broker', kind, '--of-each-theme', schedules, '--seconds', seconds, '--parallel', parallel]
  const command = ['scripts/check-outside.mjs', ...args, '--no-shrink', '--json', CHECKER_RESULT]
  await run(program, command, { log: 'checker', show: true, env })
  if (!existsSync(CHECKER_RESULT)) throw new StepError('the checker has written no result: .cache/logs/checker.log')
  return JSON.parse(readFileSync(CHECKER_RESULT, 'utf8'))[kind]
}

/** The program of a release of Node, from the npm package that has it. */
async function fetchNode(major) {
  const sentence = `Node ${major} could not be had from the npm registry.`
  const args = ['--yes', '--package', `node@${major}`, 'node', '-p', 'process.execPath']
  return (await must(sentence, 'npx', args, { log: 'node' })).trim().split('\n').at(-1)
}

/** @throws {StepError} when the engine does not load: tests would take another transport. */
function checkAddon(program, nodeVersion) {
  const code = 'import("webmq-native").then(({ loadNativeEngine }) => loadNativeEngine())'
  try {
    execFileSync(program, ['-e', code], { cwd: path.join(ROOT, 'packages', 'server'), stdio: 'pipe' })
  } catch (error) {
    throw new StepError(`The native engine does not load in Node ${nodeVersion}: ${String(error.stderr).slice(-600)}`)
  }
}

/** Docs do not change what is played. */
function commitOfCode() {
  const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  const code = ['--', '.', ':!docs']
  if (git('status', '--porcelain', ...code) !== '') throw new StepError('commit first: rows say what was played')
  return git('log', '-1', '--format=%h', '--abbrev=8', ...code)
}

function minutesText(seconds) {
  return `${Math.ceil(seconds / 60)} minutes`
}
