/** The state of the code that nodes of this one must work beside. docs/operations.md says when it moves. */
export const OLDER_COMMIT = process.env.WEBMQ_TEST_OLDER_COMMIT ?? 'fb11976697b68d2bc944923c8501f1012b91ce01'
