import { startServiceCoordinator } from 'webmq-services'

/** Runs once before all projects: lets their tests share services. Starts none. */
export async function setup(): Promise<() => Promise<void>> {
  const coordinator = await startServiceCoordinator()
  return () => coordinator.stop()
}
