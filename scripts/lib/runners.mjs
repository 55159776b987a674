import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { TEST_PROGRAMS, TSC } from './build.mjs'
import { print, ROOT, run } from './steps.mjs'
import { runValgrind } from './valgrind.mjs'

/**
 * The result of a runner. `output`: everything that failed tests wrote.
 * @typedef {{ name: string, passed: number, failed: number, skipped: number, output: string }} Count
 */

const bin = (name) => path.join(ROOT, 'node_modules', '.bin', name)
/** Manifest of the cargo workspace: engine, addon and load generator. */
const CARGO_WORKSPACE = 'packages/native/Cargo.toml'

const SOURCES = [
  'client',
  'server',
  'conformance',
  'services',
  'native',
  'transport-uws',
  'broker-nats',
  'broker-rabbitmq',
  'broker-redis',
  'outbox-postgres',
  'check',
  'bench',
].map((name) => `packages/${name}/${name === 'native' ? 'index.js' : 'src'}`)

/** A check that needs a program that `npm install` does not bring is skipped without it, with the way to get it. */
const CARGO_DENY = {
  args: ['deny', '--version'],
  hint: 'cargo-deny is not installed: cargo install --locked cargo-deny',
}

/** In one thread, which takes less CPU time: the tests run meanwhile. */
const CHECK_TYPES = [TSC, '--singleThreaded', '-p']

/**
 * One formatter and one linter per language, the types of the tests, the dependency rule, what nothing uses, and the
 * packages as users get them. Each is one check: title, command, arguments, and a program that not everybody has.
 */
const CHECKS = [
  ['format and lint of TypeScript', bin('biome'), ['check', '--error-on-warnings']],
  ['types of the tests', process.execPath, [...CHECK_TYPES, 'tsconfig.test.json']],
  ['types of the examples', process.execPath, [...CHECK_TYPES, 'examples']],
  ['types of the site', process.execPath, [...CHECK_TYPES, 'site']],
  ['dependency rule', bin('depcruise'), ['--config', '.dependency-cruiser.mjs', ...SOURCES]],
  [
    'files, exports and dependencies that nothing uses',
    bin('knip'),
    ['--no-progress', '--treat-config-hints-as-errors'],
  ],
  ['size of the client in an app', bin('size-limit'), []],
  ['comments of what the client exports', process.execPath, ['scripts/api-docs.mjs', '--check']],
  ['packages as users get them', process.execPath, ['scripts/lint-packages.mjs']],
  ['format of Rust', 'cargo', ['fmt', '--manifest-path', CARGO_WORKSPACE, '--all', '--check']],
  [
    'lint of Rust',
    'cargo',
    ['clippy', '--manifest-path', CARGO_WORKSPACE, '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings'],
  ],
  [
    'licences and sources of Rust',
    'cargo',
    // The advisories are in a repository of their own, which the workflow fetches.
    [
      'deny',
      '--manifest-path',
      CARGO_WORKSPACE,
      '--locked',
      '--config',
      'deny.toml',
      'check',
      'bans',
      'licenses',
      'sources',
    ],
    CARGO_DENY,
  ],
]

const newCount = (name) => ({ name, passed: 0, failed: 0, skipped: 0, output: '' })

/** @returns {Promise<Count>} */
export async function runLint() {
  const count = newCount('lint')
  for (const [title, command, args, needed] of CHECKS) {
    const log = `lint-${title.replaceAll(/\W+/g, '-')}`
    if (needed !== undefined && (await run(command, needed.args, { log })).exitCode !== 0) {
      print(`  skip ${title}: ${needed.hint}`)
      count.skipped++
      continue
    }
    const { exitCode, output } = await run(command, args, { log, isBackground: true })
    print(`  ${exitCode === 0 ? 'ok  ' : 'FAIL'} ${title}`)
    if (exitCode === 0) count.passed++
    else {
      count.failed++
      count.output += `${title}:\n${output}\n`
    }
  }
  return count
}

/** @returns {Promise<Count>} */
export async function runCargoTests() {
  const count = newCount('cargo')
  const args = ['test', '--manifest-path', CARGO_WORKSPACE, '--locked', '--workspace', '--no-fail-fast']
  const { exitCode, output } = await run('cargo', args, { log: 'cargo-test', isBackground: true })
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    count.passed += Number(passed)
    count.failed += Number(failed)
    count.skipped += Number(ignored)
  }
  if (exitCode !== 0) {
    count.failed ||= 1
    count.output += output
  }
  return count
}

/**
 * Tests of Rust again, under valgrind: `npm run test:all` alone has the time.
 * @returns {Promise<Count>}
 */
export const runMemcheck = () => runValgrind(CARGO_WORKSPACE)

/**
 * Runs vitest. A test that fails, fails: none is repeated.
 * @param {NodeJS.ProcessEnv} env
 * @param {readonly string[]} args Which tests; all without.
 * @returns {Promise<Count>}
 */
export async function runVitest(env, args = []) {
  const count = newCount('vitest')
  const { exitCode, report } = await playVitest(env, args)
  if (report === undefined) return { ...count, failed: 1, output: 'vitest has written no report\n' }
  // With `-t`, those that were not asked for.
  if (!args.includes('-t')) printSkipped(report)
  count.passed = report.numPassedTests
  count.skipped = report.numPendingTests + report.numTodoTests
  const failures = failuresOf(report)
  count.failed = failures.length
  count.output = failures.map(({ name, file, message }) => `${file}: ${name}: ${message}\n`).join('')
  // A failure that is not one of a test, such as an unhandled error, shows in the exit code alone.
  if (exitCode !== 0 && failures.length === 0) {
    count.failed = 1
    count.output = 'an error outside of the tests: see above\n'
  }
  return count
}

async function playVitest(env, args) {
  const file = path.join(ROOT, '.cache', 'vitest.json')
  rmSync(file, { force: true })
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const { exitCode } = await run(bin('vitest'), ['run', ...reporters, ...args], { log: 'vitest', show: true, env })
  return { exitCode, report: existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined }
}

/** Failed tests, and files that failed otherwise: they could not be loaded, or a hook failed. */
function failuresOf(report) {
  return (report?.testResults ?? []).flatMap(({ name, status, message, assertionResults }) => {
    const file = path.relative(ROOT, name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    if (failed.length === 0 && status === 'failed') return [{ file, name: file, message: firstLine(message) }]
    return failed.map((test) => ({ file, name: test.fullName, message: firstLine(test.failureMessages[0]) }))
  })
}

function firstLine(message = '') {
  return message.split('\n', 1)[0]
}

/** The name of a skipped test says what it needs. */
function printSkipped(report) {
  for (const file of report.testResults) {
    for (const { status, fullName } of file.assertionResults) {
      if (status === 'pending' || status === 'skipped') print(`  skipped: ${fullName}`)
    }
  }
}

/**
 * RFC 6455 conformance of the native transport, the groups that run in about a minute.
 * @returns {Promise<Count>}
 */
export async function runAutobahn() {
  const args = ['test/autobahn/run.mjs', '--transport', 'native', '--cases', '1.*,2.*,3.*,4.*,5.*,6.*,7.*,10.*']
  const env = { ...process.env, ...TEST_PROGRAMS }
  const { exitCode, output } = await run(process.execPath, args, { log: 'autobahn', isBackground: true, env })
  const [, passed, failed, skipped] = output.match(/^autobahn: (\d+) passed, (\d+) failed, (\d+) skipped$/m) ?? [
    0, 0, 0, 0,
  ]
  const count = { ...newCount('autobahn'), passed: Number(passed), failed: Number(failed), skipped: Number(skipped) }
  if (exitCode !== 0) {
    count.failed ||= 1
    count.output = output
  }
  return count
}

/**
 * Prints what failed, the counts of each runner, and all of them together in the last line. Sets the exit code.
 * @param {readonly Count[]} counts
 */
export function printCounts(counts) {
  for (const { name, output } of counts) if (output !== '') print(`\n${name} failed:\n${output.trimEnd()}`)
  print('')
  for (const { name, passed, failed, skipped } of counts) {
    print(`  ${name.padEnd(10)} ${passed} passed · ${failed} failed · ${skipped} skipped`)
  }
  const sum = (field) => counts.reduce((total, count) => total + count[field], 0)
  print(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`)
  if (sum('failed') > 0 || sum('passed') === 0) process.exitCode = 1
}
