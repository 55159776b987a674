import { print, StepError } from './steps.mjs'

/**
 * Makes sure that the tests can start every service they need, and says where each comes from. Build first.
 * @throws {StepError} that says what to do when one is not to be had.
 */
export async function findServices() {
  const { obtainAll } = await import('webmq-services')
  try {
    await obtainAll(({ name, source, place }) => {
      print(`  ${name.padEnd(10)} ${SOURCES[source]}${place === undefined ? '' : ` ${place}`}`)
    })
  } catch (error) {
    if (error.name !== 'ServiceError') throw error
    throw new StepError(`The tests need services: ${error.message}`)
  }
}

/** How a service was had. */
const SOURCES = {
  url: 'given by URL:',
  binary: 'found:',
  container: 'in a container',
  package: 'installed now:',
}
