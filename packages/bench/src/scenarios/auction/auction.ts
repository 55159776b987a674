import { findLoadgen } from '../../loadgen/find.js'
import type { ResultRow } from '../../results/result.js'
import type { ScenarioContext } from '../../scenario.js'
import { createRowScenario, measureInTurns, type Rows } from '../../trials/row-scenario.js'
import { makeRunCertificate } from '../../trials/run-certificate.js'
import { AUCTION_COLUMNS, AUCTION_IDENTITY } from './columns.js'
import { buildGateway, removeGateway } from './gateway-process.js'
import { type AuctionConfig, addAuctionOptions, describeAuction, readAuctionConfig } from './options.js'
import type { AuctionCase } from './processes.js'
import { auctionIdentity, auctionTarget, withGrowth } from './result.js'
import { runAuction } from './run.js'
import { searchCapacity } from './search.js'
import { auctionHeading, auctionText, nodesText } from './text.js'

/** Bids on items that many connections watch: the auction of examples/auction under load. */
export const auctionScenario = createRowScenario({
  name: 'auction',
  summary: 'bids through an HTTP gateway, Redis and a broker, to everybody who watches the item: P99 by connections',
  examples: [
    ['', 'the published experiment: 100 to 10,000 connections, 10 bids 5 s apart, on 1, 2 and 4 nodes: 15 minutes'],
    ['--interval 500ms', 'the same in three minutes'],
    ['--interval 300ms --repeat 3', 'medians of three, and a growth exponent over three times the bids'],
    ['--tiers 10000 --nodes 2,4 --node-cpus 0.5,0.25 --interval 500ms', 'two larger nodes against four smaller ones'],
    ['--nodes 2,4 --capacity --interval 1s', 'the most connections that get 90 % of the bids in time'],
    ['--tiers 10000 --nodes 4 --interval 500ms --broker redis', 'one row on another broker'],
    ['--tiers 10000 --nodes 4 --interval 500ms --items 100 --zipf 1.1', 'many items with uneven crowds'],
    ['--tiers 10000 --nodes 4 --interval 500ms --items 100 --zipf 1.1 --shard', 'the same, each item at one node'],
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
    return { rows: withGrowth(rows, runs), runs, notes: notesOf(rows) }
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
      cases: casesOf(config),
      repeat: config.repeat,
      columns: AUCTION_COLUMNS,
      progress: output,
      signal,
      titleOf: (testCase) => `${testCase.connections.toLocaleString('en')} connections, ${nodesText(testCase)}`,
      identityOf: (testCase) => auctionIdentity(config, testCase),
      measure: async (testCase, progress) =>
        await (config.isSearch ? searchCapacity : runAuction)(testCase, {
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

/** Every number of nodes with every number of connections; a search has one number to begin with. */
function casesOf({ nodes: counts, nodeCpus, tiers, isSearch }: AuctionConfig): AuctionCase[] {
  return counts.flatMap((nodes, place) =>
    (isSearch ? tiers.slice(0, 1) : tiers).map((connections) => {
      const cpus = nodeCpus[place]
      return cpus === undefined ? { connections, nodes } : { connections, nodes, cpus }
    }),
  )
}

function notesOf(rows: readonly ResultRow[]): string[] {
  const earlyCount = rows.reduce((sum, row) => sum + Number(row.earlyReceiptCount ?? 0), 0)
  return [
    "Latency is receipt less the decision's ts_us, both by the wall clock of the one machine that runs everything. None is shifted.",
    ...(earlyCount > 0
      ? [`${earlyCount} receipts were earlier than ts_us: the clock was set meanwhile. They count as 0.`]
      : []),
  ]
}
