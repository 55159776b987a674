import type { Scenario } from '../scenario.js'
import { auctionScenario } from './auction/auction.js'
import { avalancheScenario } from './avalanche.js'
import { brokersScenario } from './brokers/brokers.js'
import { clientsScenario } from './clients/clients.js'
import { clientsDeployment } from './deployment/clients.js'
import { pacedDeployment, pingDeployment, stormDeployment } from './deployment/presets.js'
import { everydayScenario } from './everyday/everyday.js'
import { fanOutScenario } from './fanout.js'
import { fleetScenario } from './fleet/fleet.js'
import { heldScenario } from './held/held.js'
import { historyScenario } from './history/history.js'
import { holdScenario } from './hold.js'
import { idleScenario } from './idle.js'
import { formatsScenario, matrixScenario, throughputScenario } from './inbound.js'
import { jitterScenario } from './jitter.js'
import { limitScenario } from './limit.js'
import { nodesScenario } from './nodes/nodes.js'
import { overloadScenario } from './overload/overload.js'
import { pacedScenario, slowScenario } from './paced.js'
import { pingScenario } from './ping.js'
import { replayScenario } from './replay.js'
import { restartScenario } from './restart.js'
import { stormScenario } from './storm.js'
import { streamsScenario } from './streams.js'
import { wildcardScenario } from './wildcard.js'

/** Scenarios that start servers of their own, by name; the first is the default. */
export const scenarios: readonly Scenario[] = [
  clientsScenario,
  brokersScenario,
  everydayScenario,
  historyScenario,
  auctionScenario,
  fleetScenario,
  nodesScenario,
  avalancheScenario,
  jitterScenario,
  overloadScenario,
  replayScenario,
  fanOutScenario,
  pacedScenario,
  streamsScenario,
  stormScenario,
  restartScenario,
  pingScenario,
  throughputScenario,
  matrixScenario,
  formatsScenario,
  holdScenario,
  heldScenario,
  limitScenario,
  wildcardScenario,
  slowScenario,
  idleScenario,
]

/** Scenarios of a server that runs already (`--url`), by name; the first is the default. */
export const deploymentScenarios: readonly Scenario[] = [
  clientsDeployment,
  pacedDeployment,
  pingDeployment,
  stormDeployment,
]
