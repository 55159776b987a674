import { DOCS_URL } from '../../protocol/docs-url.js'
import { docsOf, type ErrorCode } from '../../protocol/errors.js'

/**
 * What ends a message: the link to its cause and its fix. A message that was made of another one has a link, and the words
 * of a responder are for those who asked it.
 */
export function linkOf(code: ErrorCode, message: string): string {
  return code === 'E_RESPONSE' || message.includes(DOCS_URL) ? '' : ` (${docsOf(code)})`
}
