/** As an answer of JetStream has it. */
export interface ApiError {
  readonly code: number
  readonly err_code: number
  readonly description: string
}

/** Why JetStream does not do what it was asked for. */
export const REFUSALS = {
  consumerNotFound: { code: 404, err_code: 10_014, description: 'consumer not found' },
  consumerInUse: { code: 400, err_code: 10_013, description: 'consumer name already in use' },
  messageTooLarge: { code: 400, err_code: 10_054, description: 'message size exceeds maximum allowed' },
  nameInUse: { code: 400, err_code: 10_058, description: 'stream name already in use with a different configuration' },
  streamNotFound: { code: 404, err_code: 10_059, description: 'stream not found' },
  subjectsOverlap: { code: 400, err_code: 10_065, description: 'subjects overlap with an existing stream' },
  tooManyReplicas: { code: 500, err_code: 10_074, description: 'replicas > 1 not supported in non-clustered mode' },
  badRequest: { code: 400, err_code: 10_003, description: 'bad request' },
} as const satisfies Record<string, ApiError>

export function invalidConfig(description: string): ApiError {
  return { code: 500, err_code: 10_052, description }
}

export function sequenceNotFound(sequence: number): ApiError {
  return { code: 400, err_code: 10_043, description: `sequence ${sequence} not found` }
}
