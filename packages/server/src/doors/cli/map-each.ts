import { ERRORS, WebMQError } from 'webmq-client/protocol'
import { invalidOption } from '../../kernel/base/invalid-option.js'

const PREFIX = `${ERRORS.E_OPTION_INVALID.message}: `

/**
 * Maps every item, also after one that is not valid, so that one message names all mistakes.
 * @throws {WebMQError} `E_OPTION_INVALID` with the details of all; any other error at once.
 */
export function mapEach<T, R>(items: Iterable<T>, map: (item: T) => R): readonly R[] {
  const errors: WebMQError[] = []
  const results: R[] = []
  for (const item of items) {
    try {
      results.push(map(item))
    } catch (error) {
      if (!(error instanceof WebMQError) || error.code !== 'E_OPTION_INVALID') throw error
      errors.push(error)
    }
  }
  const [first] = errors
  if (first === undefined) return results
  if (errors.length === 1) throw first
  throw invalidOption(errors.map(({ message }) => message.replace(PREFIX, '')).join('; '), new AggregateError(errors))
}
