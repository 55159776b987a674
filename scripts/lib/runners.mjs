import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { ROOT, run } from './steps.mjs'

/** @typedef {{ name: string, passed: number, failed: number, skipped: number }} Count */

const bin = (name) => path.join(ROOT, 'node_modules', '.bin', name)
/** The product's Rust, and the bench's. */
const MANIFESTS = { engine: 'packages/native/Cargo.toml', 'load generator': 'packages/bench/loadgen/Cargo.toml' }

const SOURCES = ['client', 'server', 'conformance', 'services', 'native', 'bench'].map(
  (name) => `packages/${name}/${name === 'native' ? 'index.js' : 'src'}`,
)

/** One formatter and one linter per language, the types of the tests, and the dependency rule. Each is one check. */
const CHECKS = [
  ['format and lint of TypeScript', bin('biome'), ['check', '--error-on-warnings']],
  ['types of the tests', bin('tsc'), ['-p', 'tsconfig.test.json']],
  ['dependency rule', bin('depcruise'), ['--config', '.dependency-cruiser.mjs', ...SOURCES]],
  ...Object.entries(MANIFESTS).flatMap(([name, manifest]) => [
    [`format of Rust, ${name}`, 'cargo', ['fmt', '--manifest-path', manifest, '--all', '--check']],
    [
      `lint of Rust, ${name}`,
      'cargo',
      ['clippy', '--manifest-path', manifest, '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings'],
    ],
  ]),
]

/** @returns {Promise<Count>} */
export async function runLint() {
  const count = { name: 'lint', passed: 0, failed: 0, skipped: 0 }
  for (const [title, command, args] of CHECKS) {
    const { exitCode, output } = await run(command, args, { log: `lint-${title.replaceAll(' ', '-')}` })
    process.stdout.write(`  ${exitCode === 0 ? 'ok  ' : 'FAIL'} ${title}\n`)
    if (exitCode === 0) count.passed++
    else {
      count.failed++
      process.stdout.write(`${output}\n`)
    }
  }
  return count
}

/** @returns {Promise<Count>} */
export async function runCargoTests() {
  const count = { name: 'cargo', passed: 0, failed: 0, skipped: 0 }
  for (const [name, manifest] of Object.entries(MANIFESTS)) await countCargoTests(count, name, manifest)
  return count
}

async function countCargoTests(count, name, manifest) {
  const args = ['test', '--manifest-path', manifest, '--locked', '--workspace']
  const { exitCode, output } = await run('cargo', args, { log: `cargo-test-${name.replaceAll(' ', '-')}` })
  for (const [, passed, failed, ignored] of output.matchAll(
    /^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm,
  )) {
    count.passed += Number(passed)
    count.failed += Number(failed)
    count.skipped += Number(ignored)
  }
  if (exitCode !== 0) {
    process.stdout.write(`${output}\n`)
    count.failed ||= 1
  }
}

/** @returns {Promise<Count>} */
export async function runVitest(env) {
  const file = path.join(ROOT, '.cache', 'vitest.json')
  rmSync(file, { force: true })
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const { exitCode } = await run(bin('vitest'), args, { log: 'vitest', show: true, env })
  const count = { name: 'vitest', passed: 0, failed: 0, skipped: 0 }
  if (existsSync(file)) {
    const report = JSON.parse(readFileSync(file, 'utf8'))
    count.passed = report.numPassedTests
    count.failed = report.numFailedTests
    count.skipped = report.numPendingTests + report.numTodoTests
    printSkipped(report)
  }
  // A file that could not be loaded, or an unhandled error, fails the run without failing a test.
  if (exitCode !== 0) count.failed ||= 1
  return count
}

/** Suites skip by capability: the name of a skipped test says which one the adapter lacks. */
function printSkipped(report) {
  for (const file of report.testResults) {
    for (const { status, fullName } of file.assertionResults) {
      if (status === 'pending' || status === 'skipped') process.stdout.write(`  skipped: ${fullName}\n`)
    }
  }
}

/**
 * RFC 6455 conformance of the native transport, the groups that run in about a minute.
 * @returns {Promise<Count>}
 */
export async function runAutobahn() {
  const args = ['test/autobahn/run.mjs', '--transport', 'native', '--cases', '1.*,2.*,3.*,4.*,5.*,6.*,7.*,10.*']
  const { exitCode, output } = await run(process.execPath, args, { log: 'autobahn', show: true })
  const [, passed, failed, skipped] = output.match(/^autobahn: (\d+) passed, (\d+) failed, (\d+) skipped$/m) ?? [
    0, 0, 0, 0,
  ]
  const count = { name: 'autobahn', passed: Number(passed), failed: Number(failed), skipped: Number(skipped) }
  if (exitCode !== 0) count.failed ||= 1
  return count
}
