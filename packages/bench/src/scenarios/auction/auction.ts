import type { Command } from 'commander'
import { RunError } from '../../exit-codes.js'
import { findLoadgen } from '../../loadgen/find.js'
import type { ResultRow } from '../../results/result.js'
import { RunProgress } from '../../run-progress.js'
import type { Scenario, ScenarioContext } from '../../scenario.js'
import { combineRuns } from '../../trials/medians.js'
import { checkRowAssertions, parseRowAssertion, ROW_ASSERTION_FORM } from '../../trials/row-assertions.js'
import { makeRunCertificate } from '../../trials/run-certificate.js'
import { NOT_MEASURED } from '../../trials/run-trials.js'
import { AUCTION_COLUMNS, AUCTION_IDENTITY } from './columns.js'
import { buildGateway, removeGateway } from './gateway-process.js'
import { type AuctionConfig, addAuctionOptions, describeAuction, readAuctionConfig } from './options.js'
import type { AuctionCase } from './processes.js'
import { auctionIdentity, auctionTarget, withGrowth } from './result.js'
import { type AuctionRunContext, runAuction } from './run.js'
import { auctionHeading, auctionText } from './text.js'

/** Bids on items that many connections watch: the auction of examples/auction under load. */
export const auctionScenario: Scenario = {
  name: 'auction',
  summary: 'bids through an HTTP gateway, Redis and a broker, to everybody who watches the item: P99 by connections',
  examples: [
    ['', 'the published experiment: 100 to 10,000 connections, 10 bids 5 s apart, on 1, 2 and 4 nodes: 15 minutes'],
    ['--interval 500ms', 'the same in three minutes'],
    ['--tiers 10000 --nodes 4 --interval 500ms --broker redis', 'one row on another broker'],
    ['--tiers 10000 --nodes 4 --interval 500ms --items 100 --zipf 1.1', 'many items with uneven crowds'],
    ['--tiers 10000 --nodes 4 --interval 500ms --items 100 --zipf 1.1 --shard', 'the same, each item at one node'],
    ['--tiers 1000 --nodes 2 --bids 50 --interval 100ms --migrate', 'a node is drained meanwhile'],
    ["--interval 500ms --assert missingCount=0 --assert 'latencyMs.p99@10000 < 150ms'", 'in CI'],
  ],
  assertHelp: `Conditions for --assert: ${ROW_ASSERTION_FORM}
  without a target every row has to meet it. Columns:
  ${AUCTION_COLUMNS.map(({ key, unit }) => (unit === '' ? key : `${key} (${unit})`)).join(', ')}`,
  addOptions(command: Command) {
    addAuctionOptions(command)
  },
  prepare(values) {
    const config = readAuctionConfig(values)
    const assertions = ((values.assert ?? []) as string[]).map((text) =>
      parseRowAssertion(text, AUCTION_COLUMNS, [auctionTarget(config)]),
    )
    return {
      config: describeAuction(config),
      notes: [],
      heading: auctionHeading(config),
      async run(context) {
        const { rows, runs } = await measureAuctions(config, context)
        const notes = notesOf(rows)
        return {
          json: { columns: AUCTION_COLUMNS, identity: AUCTION_IDENTITY, rows, runs, notes, versions: {} },
          text: auctionText(rows, notes, context.width),
          assertions: checkRowAssertions(assertions, rows, AUCTION_IDENTITY),
        }
      },
    }
  },
}

/** @throws {RunError} when no run gave a result. */
async function measureAuctions(config: AuctionConfig, { progress: output, signal }: ScenarioContext) {
  const loadgenProgram = await findLoadgen(output)
  output.phase('building the gateway')
  const gatewayProgram = await buildGateway()
  const certificate = config.hasTls ? await makeRunCertificate() : undefined
  const cases = config.nodes.flatMap((nodes) => config.tiers.map((connections) => ({ connections, nodes })))
  const steps = Array.from({ length: config.repeat }, (_, round) =>
    cases.map((testCase) => ({ testCase, repeat: round + 1 })),
  ).flat()
  const progress = new RunProgress(output, steps.length)
  const measured: { readonly testCase: AuctionCase; readonly row: ResultRow }[] = []
  try {
    for (const { testCase, repeat } of steps) {
      const { connections, nodes } = testCase
      progress.step(`${connections.toLocaleString('en')} connections, ${nodes} nodes, round ${repeat}`)
      const tls = certificate?.files
      const row = await measureOnce(testCase, { config, loadgenProgram, gatewayProgram, tls, progress, signal })
      measured.push({ testCase, row: { ...row, repeat, order: measured.length + 1 } })
    }
  } finally {
    progress.done()
    await removeGateway(gatewayProgram)
    await certificate?.remove()
  }
  const runs = measured.map(({ row }) => row)
  if (runs.every(({ verdict }) => verdict === 'failed')) {
    throw new RunError(runs[0]?.verdictReason ?? 'nothing to measure')
  }
  const rows = cases.map((testCase) => {
    const own = measured.filter((one) => one.testCase === testCase)
    return combineRuns(
      own.map(({ row }) => row),
      AUCTION_COLUMNS,
    )
  })
  return { rows: withGrowth(rows), runs }
}

async function measureOnce(testCase: AuctionCase, context: AuctionRunContext): Promise<ResultRow> {
  try {
    return await runAuction(testCase, context)
  } catch (error) {
    // The failure of one row must not discard the figures of the others.
    if (!(error instanceof RunError) || context.signal.aborted) throw error
    context.progress.note(`${testCase.connections} x ${testCase.nodes} failed: ${error.message}`)
    return {
      ...NOT_MEASURED,
      ...auctionIdentity(context.config, testCase),
      verdict: 'failed',
      verdictReason: error.message,
      repeatCount: 1,
      spread: {},
    }
  }
}

/** What the reader must know about the clocks. */
function notesOf(rows: readonly ResultRow[]): string[] {
  const earlyCount = rows.reduce((sum, row) => sum + Number(row.earlyReceiptCount ?? 0), 0)
  return [
    "Latency is receipt less the server's ts_us, both by the wall clock of their machine. No latency is shifted by the offset of the clocks.",
    ...(earlyCount > 0 ? [`${earlyCount} receipts were earlier than ts_us: the clocks differ. They count as 0.`] : []),
  ]
}
