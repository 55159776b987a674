import type { MemoryBrokerOptions } from '../src/adapters/brokers/memory/broker.js'
import { resolveOptions } from '../src/doors/options/options.js'
import type { ServerOptions } from '../src/doors/options/server-options.js'
import { historyRulesOf } from '../src/kernel/ports/history-rules.js'
import { retainRulesOf } from '../src/kernel/ports/retain-rules.js'

/** The options that a server with these options passes to its memory broker. */
export function memoryOptions(options: ServerOptions = {}): MemoryBrokerOptions {
  const resolved = resolveOptions(options)
  return { ...resolved, history: historyRulesOf(resolved, true), retain: retainRulesOf(resolved) }
}
