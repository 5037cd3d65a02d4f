// TypedRequest 3.3.0, the last version of the old generation that is served as a package.
export const version = '3.3.0';
export {
  TypedRouter,
  TypedHandler,
  TypedTarget,
  TypedRequest,
  TypedResponseError,
} from '@api.global/typedrequest';
