import { Command, InvalidArgumentError } from 'commander'
import { EXIT, UsageError } from '../exit-codes.js'
import type { ProgressOutput } from '../progress.js'
import { compareResults } from './compare.js'
import { comparePage } from './compare-page.js'
import { compareText } from './compare-text.js'
import { FAIL_ON_HELP, parseFailOn } from './fail-on.js'
import { readRecord } from './read-record.js'
import { writeOutput } from './write-output.js'

interface CompareFlags {
  readonly html?: string
  readonly failOn: readonly string[]
  readonly targets?: readonly [string, string]
  /** Percent. */
  readonly noise: number
  readonly all: boolean
}

const DEFAULT_NOISE_PERCENT = 3

/**
 * `benchmark.js compare`: reads one or two results, prints the differences beyond noise, and returns the exit code.
 * @param args Arguments after `compare`.
 * @throws {UsageError} for files that are not results or have nothing in common.
 */
export function runCompare(args: readonly string[], stdout: ProgressOutput, stderr: ProgressOutput): number {
  const command = createCommand(stdout, stderr).parse(args, { from: 'user' })
  const [first = '', second] = command.args
  const flags = command.opts<CompareFlags>()
  if (second === undefined && flags.targets === undefined) {
    throw new UsageError('compare takes two files, or one and --targets BEFORE,AFTER')
  }
  const before = readRecord(first)
  const after = second === undefined ? before : readRecord(second)
  const comparison = compareResults(before, after, {
    leastChange: flags.noise / 100,
    ...(flags.targets === undefined ? {} : { targets: flags.targets }),
  })
  const conditions = flags.failOn.map((text) => ({ text, find: parseFailOn(text, comparison) }))
  if (flags.html !== undefined) writeOutput('--html', comparePage(comparison), flags.html, stdout)
  // With `--html -` standard output holds only the page.
  const report = flags.html === '-' ? stderr : stdout
  report.write(compareText(comparison, flags.all))
  const findings = conditions.flatMap(({ text, find }) =>
    find(comparison).map((finding) => `FAILS on '${text}': ${finding}`),
  )
  for (const finding of findings) report.write(`${finding}\n`)
  return findings.length === 0 ? EXIT.ok : EXIT.assertion
}

function createCommand(stdout: ProgressOutput, stderr: ProgressOutput): Command {
  return new Command('benchmark.js compare')
    .description('Compares two results that --json wrote, or two targets within one or two of them.')
    .argument('<before>', 'a JSON file')
    .argument('[after]', 'another, of the same scenario')
    .option('--html <file>', "write the comparison as one page; '-' for standard output")
    .option(
      '--fail-on <condition>',
      'end with exit code 3 when this is found; repeatable',
      (condition: string, previous: readonly string[]) => [...previous, condition],
      [],
    )
    .option('--targets <before,after>', "compare one target's rows with another's, e.g. uws,webmq-native", targetPair)
    .option('--noise <percent>', 'differences up to this are always noise', percent, DEFAULT_NOISE_PERCENT)
    .option('--all', 'print differences within noise too', false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      `
A difference is noise unless the ranges of the repeats, widened, are apart (±10% around a single run).

${FAIL_ON_HELP}

Examples:
  node benchmark.js compare before.json after.json --fail-on worse
  node benchmark.js compare result.json --targets uws,webmq-native --fail-on 'deliveriesPerServerCpuSecond<5x'

Exit codes: 0 ok, 1 a file could not be written, 2 wrong usage, 3 a --fail-on condition was found.`,
    )
}

function targetPair(text: string): [string, string] {
  const [before, after, ...more] = text.split(',')
  if (!before || !after || more.length > 0) {
    throw new InvalidArgumentError('It must be two names with a comma between them.')
  }
  return [before, after]
}

function percent(text: string): number {
  const number = /^\d+(\.\d+)?%?$/.test(text) ? Number(text.replace('%', '')) : Number.NaN
  if (Number.isNaN(number)) throw new InvalidArgumentError('It must be a percentage, such as 3.')
  return number
}
