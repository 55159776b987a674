import { clientsScenario } from './clients.js'
import type { Scenario } from './scenario.js'

/** Every scenario by name. */
export const scenarios: readonly Scenario[] = [clientsScenario]

/** The one that runs without `--scenario`. */
export const defaultScenario = clientsScenario
