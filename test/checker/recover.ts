import type { BrokerName } from './schedule.js'

export async function measureRecovery(_broker: BrokerName, _times: number): Promise<string> {
  throw new Error('not written yet')
}
