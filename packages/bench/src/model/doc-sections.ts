import { UsageError } from '../exit-codes.js'
import { type Assumptions, DEFAULT_ASSUMPTIONS } from './assumptions.js'
import type { Coefficients } from './coefficients.js'
import { peerTable } from './peers.js'
import { brokerTable, knownBrokers, markdown, nodeTable, predictionTable, residualTable, wallTable } from './tables.js'
import { WORKLOADS } from './workload.js'

/** Sizes in the documentation. */
export const DOC_SIZES: readonly number[] = [1e5, 1e6, 1e7]
const DOC_WORKLOADS = ['chat', 'broadcast', 'market']

/** The generated parts of docs/scaling.md, by the name in their markers. */
export function docSections(
  coefficients: Coefficients,
  assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
): ReadonlyMap<string, string> {
  const kinds = knownBrokers(coefficients)
  const shown = WORKLOADS.filter(({ name }) => DOC_WORKLOADS.includes(name))
  return new Map([
    ['machine', machineLine(coefficients)],
    ['node', markdown(nodeTable(coefficients))],
    ['brokers', markdown(brokerTable(coefficients))],
    ['residuals', markdown(residualTable(coefficients))],
    ...shown.map((workload): [string, string] => [
      workload.name,
      markdown(predictionTable(coefficients, workload, DOC_SIZES, kinds, assumptions)),
    ]),
    ['walls', markdown(wallTable(coefficients, shown, kinds, assumptions))],
    ['peers', markdown(peerTable(coefficients, assumptions))],
  ])
}

/** Where the coefficients are from, in lines of the documentation. */
export function machineLine({ command, machine }: Coefficients): string {
  const { cpuModel, cores, kernel, nodeVersion, loadAverage, gitCommit, startedAt } = machine
  const state = gitCommit === null ? '' : `, commit ${gitCommit.slice(0, 7)}`
  return [
    `Measured on ${startedAt.slice(0, 10)} on ${cpuModel}, ${cores} cores, ${kernel}, Node ${nodeVersion.replace('v', '')},`,
    `load ${loadAverage} before the run${state}, by:`,
    '',
    '```sh',
    command,
    '```',
  ].join('\n')
}

/**
 * The text with its marked parts written anew: `<!-- model: NAME -->` to `<!-- /model -->`.
 * @throws {UsageError} when a marker names no part, or a part has no marker.
 */
export function withSections(text: string, sections: ReadonlyMap<string, string>): string {
  const found: string[] = []
  const written = text.replace(
    /(<!-- model: (\w+) -->\n)[\s\S]*?(<!-- \/model -->)/g,
    (_, start, name: string, end) => {
      const section = sections.get(name)
      if (section === undefined) throw new UsageError(`there is no generated part '${name}'`)
      found.push(name)
      return `${start}\n${section}\n\n${end}`
    },
  )
  const missing = [...sections.keys()].filter((name) => !found.includes(name))
  if (missing.length > 0) throw new UsageError(`the text has no marker of ${missing.join(', ')}`)
  return written
}
