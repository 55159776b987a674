import { startServiceCoordinator } from '../packages/server/src/services/service-coordinator.js'

/** Runs once before all projects: lets their tests share services. Starts none. */
export async function setup(): Promise<() => Promise<void>> {
  const coordinator = await startServiceCoordinator()
  return () => coordinator.stop()
}
