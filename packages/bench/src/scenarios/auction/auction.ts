import { findLoadgen } from '../../loadgen/find.js'
import type { ResultRow } from '../../results/result.js'
import type { ScenarioContext } from '../../scenario.js'
import { createRowScenario, measureInTurns, type Rows } from '../../trials/row-scenario.js'
import { makeRunCertificate } from '../../trials/run-certificate.js'
import { AUCTION_COLUMNS, AUCTION_IDENTITY } from './columns.js'
import { buildGateway, removeGateway } from './gateway-process.js'
import { type AuctionConfig, addAuctionOptions, describeAuction, readAuctionConfig } from './options.js'
import { auctionIdentity, auctionTarget, withGrowth } from './result.js'
import { runAuction } from './run.js'
import { auctionHeading, auctionText } from './text.js'

/** Bids on items that many connections watch: the auction of examples/auction under load. */
export const auctionScenario = createRowScenario({
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
  columns: AUCTION_COLUMNS,
  identity: AUCTION_IDENTITY,
  addOptions: addAuctionOptions,
  readConfig: readAuctionConfig,
  targets: (config) => [auctionTarget(config)],
  describe: describeAuction,
  heading: auctionHeading,
  async measure(config, context) {
    const { rows, runs } = await measureAuctions(config, context)
    return { rows: withGrowth(rows), runs, notes: notesOf(rows) }
  },
  text: auctionText,
})

async function measureAuctions(config: AuctionConfig, { progress: output, signal }: ScenarioContext): Promise<Rows> {
  const loadgenProgram = await findLoadgen(output)
  output.phase('building the gateway')
  const gatewayProgram = await buildGateway()
  const certificate = config.hasTls ? await makeRunCertificate() : undefined
  try {
    return await measureInTurns({
      cases: config.nodes.flatMap((nodes) => config.tiers.map((connections) => ({ connections, nodes }))),
      repeat: config.repeat,
      columns: AUCTION_COLUMNS,
      progress: output,
      signal,
      titleOf: ({ connections, nodes }) => `${connections.toLocaleString('en')} connections, ${nodes} nodes`,
      identityOf: (testCase) => auctionIdentity(config, testCase),
      measure: async (testCase, progress) =>
        await runAuction(testCase, {
          config,
          loadgenProgram,
          gatewayProgram,
          tls: certificate?.files,
          progress,
          signal,
        }),
    })
  } finally {
    await removeGateway(gatewayProgram)
    await certificate?.remove()
  }
}

function notesOf(rows: readonly ResultRow[]): string[] {
  const earlyCount = rows.reduce((sum, row) => sum + Number(row.earlyReceiptCount ?? 0), 0)
  return [
    "Latency is receipt less the server's ts_us, both by the wall clock of their machine. No latency is shifted by the offset of the clocks.",
    ...(earlyCount > 0 ? [`${earlyCount} receipts were earlier than ts_us: the clocks differ. They count as 0.`] : []),
  ]
}
