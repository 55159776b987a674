import { print, StepError } from './steps.mjs'

/**
 * Makes sure that the tests can start every service they need, and prints the source of each. Build first.
 * @throws {StepError} with instructions when one is not available.
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

/** The source of a service, in words. */
const SOURCES = {
  url: 'given by URL:',
  binary: 'found:',
  container: 'in a container',
  package: 'installed now:',
}
