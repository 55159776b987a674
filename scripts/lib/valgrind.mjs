import { print, run } from './steps.mjs'

/** Each program may take so long. */
const MAX_SECONDS = 300
/** valgrind itself ends with it when it has found something; a test program ends with 101. */
const ERROR_EXIT_CODE = 99

/**
 * The tests of Rust that are played under memcheck: what decodes the bytes of strangers, and the memory of the fan-out. A
 * test with an engine waits for real time, which is 30 times as long here.
 * @type {readonly { crate: string, target: string, filters: readonly string[] }[]}
 */
const PLAYED = [
  { crate: 'webmq-websocket', target: 'decoder', filters: [] },
  { crate: 'webmq-websocket', target: 'deflate', filters: [] },
  { crate: 'webmq-websocket', target: 'properties', filters: [] },
  { crate: 'webmq-websocket', target: 'webmq_websocket', filters: [] },
  // Its test of large writes fills sockets for minutes.
  {
    crate: 'webmq-engine',
    target: 'webmq_engine',
    filters: ['proxy_protocol', 'fanout::', '--skip', 'write_size_test'],
  },
]
/** Random cases of a property, instead of 256. */
const PROPERTY_CASES = '8'

const newCount = () => ({ name: 'valgrind', passed: 0, failed: 0, skipped: 0, output: '' })

/**
 * Plays tests of Rust under valgrind's memcheck. Without valgrind, and where it cannot be installed, they are skipped.
 * @param {string} workspace manifest of cargo
 * @returns {Promise<import('./runners.mjs').Count>}
 */
export async function runValgrind(workspace) {
  const reason = await missing()
  if (reason !== undefined) {
    print(`  skip valgrind: ${reason}`)
    return { ...newCount(), skipped: 1 }
  }
  const crates = [...new Set(PLAYED.map(({ crate }) => crate))].flatMap((crate) => ['-p', crate])
  const args = ['test', '--manifest-path', workspace, '--locked', ...crates, '--no-run', '--message-format=json']
  const { exitCode, output } = await run('cargo', args, { log: 'valgrind-build', isBackground: true })
  if (exitCode !== 0) return { ...newCount(), failed: 1, output }
  const programs = programsOf(output)
  const count = newCount()
  for (const played of PLAYED) await play(programs.get(played.target), played, count)
  return count
}

/** @returns {Promise<string | undefined>} Why it cannot be played. */
async function missing() {
  if (process.platform !== 'linux') return 'it needs Linux'
  if (await isThere()) return undefined
  const { canInstallPackages, installPackage } = await import('webmq-services')
  if (!canInstallPackages()) return 'valgrind is not installed: apt-get install valgrind'
  await installPackage('valgrind')
  return (await isThere()) ? undefined : 'the Debian package brings no valgrind'
}

async function isThere() {
  return (await run('valgrind', ['--version'], { log: 'valgrind-version' })).exitCode === 0
}

/** The programs that cargo has built, by target. */
function programsOf(output) {
  const artifacts = output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  return new Map(
    artifacts
      .filter(({ profile, executable }) => profile?.test === true && typeof executable === 'string')
      .map(({ target, executable }) => [target.name, executable]),
  )
}

async function play(program, { target, filters }, count) {
  if (program === undefined) {
    count.failed++
    count.output += `${target} was not built\n`
    return
  }
  const memcheck = [
    '--quiet',
    `--error-exitcode=${ERROR_EXIT_CODE}`,
    '--leak-check=full',
    '--show-leak-kinds=definite',
    '--errors-for-leak-kinds=definite',
  ]
  const args = [String(MAX_SECONDS), 'valgrind', ...memcheck, program, ...filters, '--test-threads=1']
  const env = { ...process.env, PROPTEST_CASES: PROPERTY_CASES }
  const { exitCode, output } = await run('timeout', args, { log: `valgrind-${target}`, isBackground: true, env })
  const [, passed = 0, failed = 0] = /^test result: .*?(\d+) passed; (\d+) failed/m.exec(output) ?? []
  count.passed += Number(passed)
  count.failed += Number(failed)
  if (exitCode === 0) return
  count.failed ||= 1
  count.output += `${target}, exit code ${exitCode}:\n${output}\n`
}
