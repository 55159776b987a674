import { withoutSecrets } from '../brokers/broker-choice.js'
import type { MachineInfo } from '../measure/machine.js'
import type { AssertionResult, ScenarioOutcome } from '../scenario.js'

const RULE = '━'.repeat(33)

export function headText(title: string, heading: string, machine: MachineInfo): string {
  const memory = `${Math.round(machine.memoryBytes / 2 ** 30)} GiB`
  return [
    `Benchmark: ${title}`,
    heading,
    `  Machine: ${machine.cpuModel}, ${machine.cores} cores, ${memory}, ${machine.kernel}, Node ${machine.nodeVersion}` +
      `${machine.congestionControl === null ? '' : `, ${machine.congestionControl}`}, load ${machine.loadAverage}`,
    '',
  ].join('\n')
}

export function resultText(outcome: ScenarioOutcome, assertions: readonly AssertionResult[], command: string): string {
  const checks = assertions.map(
    ({ text, isMet, actual }) => `  ${isMet ? 'holds' : 'FAILS'}: ${text} (${actual ?? 'nothing measured'})`,
  )
  return [
    RULE,
    'Results',
    RULE,
    '',
    outcome.text,
    '',
    ...(checks.length === 0 ? [] : ['Assertions:', ...checks, '']),
    `Command: ${command}`,
    '',
  ].join('\n')
}

/** The arguments as typed in a POSIX shell, without passwords and tokens. */
export function commandLine(args: readonly string[]): string {
  return ['node', 'benchmark.js', ...withoutTokens(args).map(withoutSecrets).map(quote)].join(' ')
}

function withoutTokens(args: readonly string[]): string[] {
  return args.map((arg, index) => {
    if (args[index - 1] === '--token') return '***'
    return arg.replace(/^(--token=).*/s, '$1***')
  })
}

function quote(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`
}
