//<- pytato_provenance: _pt_kernel, made in operators.py, physics.py, test_advection_kernel.py, time_stepping.py
//<- Above each statement: the line whose result it stores, then the lines of all
//<- operations that pytato inlined into it. "a.py:1 in f < b.py:2" is what f made when
//<- called at b.py:2; it is shown where a line was reached from several.
//<- Lines that begin with //<- are not loopy's; strip_annotations(text) takes them out.
#define lid(N) ((int) get_local_id(N))
#define gid(N) ((int) get_group_id(N))
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64: enable
#endif
#define LOOPY_CALL_WITH_INTEGER_TYPES(MACRO_NAME) \
    MACRO_NAME(int8, char) \
    MACRO_NAME(int16, short) \
    MACRO_NAME(int32, int) \
    MACRO_NAME(int64, long)
#define LOOPY_DEFINE_FLOOR_DIV_POS_B(SUFFIX, TYPE) \
    static inline TYPE loopy_floor_div_pos_b_##SUFFIX(TYPE a, TYPE b) \
    { \
        if (a<0) \
            a = a - (b-1); \
        return a/b; \
    }
LOOPY_CALL_WITH_INTEGER_TYPES(LOOPY_DEFINE_FLOOR_DIV_POS_B)
#undef LOOPY_DEFINE_FLOOR_DIV_POS_B
#undef LOOPY_CALL_WITH_INTEGER_TYPES

__kernel void __attribute__ ((reqd_work_group_size(1, 1, 1))) _pt_kernel(__global double const *__restrict__ _pt_data, __global double const *__restrict__ state, __global double const *__restrict__ _pt_data_0, __global double const *__restrict__ _pt_data_1, __global double const *__restrict__ _pt_data_2, __global double *__restrict__ rate1, __global double *__restrict__ rate2, __global double *__restrict__ rate3, __global double *__restrict__ rate4, __global double *__restrict__ next_state, int const _pt_data_0_offset, int const _pt_data_1_offset, int const _pt_data_2_offset, int const _pt_data_offset, int const state_offset, __global double *__restrict__ _pt_temp, __global double *__restrict__ _pt_temp_0, __global double *__restrict__ _pt_temp_1, __global double *__restrict__ _pt_temp_2, __global double *__restrict__ _pt_temp_3, __global double *__restrict__ _pt_temp_4, __global double *__restrict__ _pt_temp_5, __global double *__restrict__ _pt_temp_6)
{
  //<- input     _pt_data   operators.py:25             in Operators.__init__                            | self.weak_derivative_matrix = pt.make_data_wrapper(discretization.weak_derivative)
  //<- input     state      test_advection_kernel.py:00 in program                                       | state = pt.make_placeholder(name="state", shape=(16,), dtype=np.float64)
  //<- input     _pt_data_0 operators.py:28             in Operators.__init__                            | self.lift_matrix = pt.make_data_wrapper(discretization.lift)
  //<- input     _pt_data_1 physics.py:27               in Advection.__init__                            | self.outflow = pt.make_data_wrapper(np.maximum(normal_velocity, 0))
  //<- input     _pt_data_2           :28               in Advection.__init__                            | self.inflow = pt.make_data_wrapper(np.minimum(normal_velocity, 0))
  //<- output    rate1      operators.py:37             in Operators.to_state < time_stepping.py:25      | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
  //<- output    rate2                  :37             in Operators.to_state < time_stepping.py:26      | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
  //<- output    rate3                  :37             in Operators.to_state < time_stepping.py:27      | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
  //<- output    rate4                  :37             in Operators.to_state < time_stepping.py:28      | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
  //<- output    next_state time_stepping.py:31         in rk4_step                                      | next_state = state + dt * slope
  //<- temporary _pt_temp   operators.py:41             in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  //<- temporary _pt_temp_0             :45             in Operators.lift < time_stepping.py:25          | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  //<- temporary _pt_temp_1             :41             in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  //<- temporary _pt_temp_2             :45             in Operators.lift < time_stepping.py:26          | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  //<- temporary _pt_temp_3             :41             in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  //<- temporary _pt_temp_4             :45             in Operators.lift < time_stepping.py:27          | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  //<- temporary _pt_temp_5             :41             in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  //<- temporary _pt_temp_6             :45             in Operators.lift < time_stepping.py:28          | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  //<- bound for operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  long _pt_sum_r0_0_lbound;
  long _pt_sum_r0_0_ubound;
  //<- bound for operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  long _pt_sum_r0_1_lbound;
  long _pt_sum_r0_1_ubound;
  //<- bound for operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  long _pt_sum_r0_2_lbound;
  long _pt_sum_r0_2_ubound;
  //<- bound for operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  long _pt_sum_r0_3_lbound;
  long _pt_sum_r0_3_ubound;
  //<- bound for operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  long _pt_sum_r0_4_lbound;
  long _pt_sum_r0_4_ubound;
  //<- bound for operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  long _pt_sum_r0_5_lbound;
  long _pt_sum_r0_5_ubound;
  //<- bound for operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  long _pt_sum_r0_6_lbound;
  long _pt_sum_r0_6_ubound;
  //<- bound for operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  long _pt_sum_r0_lbound;
  long _pt_sum_r0_ubound;
  //<- loopy: accumulator for operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  double acc__pt_sum_r0;
  //<- loopy: accumulator for operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  double acc__pt_sum_r0_0;
  //<- loopy: accumulator for operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  double acc__pt_sum_r0_1;
  //<- loopy: accumulator for operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  double acc__pt_sum_r0_2;
  //<- loopy: accumulator for operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  double acc__pt_sum_r0_3;
  //<- loopy: accumulator for operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  double acc__pt_sum_r0_4;
  //<- loopy: accumulator for operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
  double acc__pt_sum_r0_5;
  //<- loopy: accumulator for operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
  double acc__pt_sum_r0_6;

  for (int _pt_temp_0_dim0 = 0; _pt_temp_0_dim0 <= 3; ++_pt_temp_0_dim0)
    for (int _pt_temp_0_dim1 = 0; _pt_temp_0_dim1 <= 3; ++_pt_temp_0_dim1)
    {
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_0_lbound = (long) (0);
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_0_ubound = (long) (2);
      //<- loopy: start of the reduction for operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      acc__pt_sum_r0_0 = (double) (0.0);
      for (int _pt_sum_r0_0 = _pt_sum_r0_0_lbound; _pt_sum_r0_0 <= -1 + _pt_sum_r0_0_ubound; ++_pt_sum_r0_0)
        //<- loopy: step of the reduction for operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
        //<- inlines operators.py:33 in Operators.to_elements    | return pt.reshape(state, shape)
        //<-                     :50 in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
        //<-                     :54 in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
        //<-                     :58 in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
        //<-                     :59 in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
        //<-                     :60 in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
        //<-         physics.py:32   in Advection.upwind_flux    | leaving = self.outflow * interior
        //<-                   :33   in Advection.upwind_flux    | entering = self.inflow * exterior
        //<-                   :34   in Advection.upwind_flux    | return leaving + entering
        acc__pt_sum_r0_0 = acc__pt_sum_r0_0 + _pt_data_0[2 * _pt_temp_0_dim1 + _pt_sum_r0_0 + _pt_data_0_offset] * (_pt_data_1[_pt_sum_r0_0 + _pt_data_1_offset] * ((_pt_sum_r0_0 < 1) ? state[4 * _pt_temp_0_dim0 + _pt_sum_r0_0 + state_offset] : state[2 + 4 * _pt_temp_0_dim0 + _pt_sum_r0_0 + state_offset]) + _pt_data_2[_pt_sum_r0_0 + _pt_data_2_offset] * ((_pt_sum_r0_0 < 1) ? state[state_offset + -1 + 4 * _pt_temp_0_dim0 + _pt_sum_r0_0 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_0_dim0, 4)] : state[3 + 4 * _pt_temp_0_dim0 + _pt_sum_r0_0 + state_offset + -16 * ((1 + _pt_temp_0_dim0) / 4)]));
      //<- stores operators.py:45 in Operators.lift < time_stepping.py:25 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      //<- inlines operators.py:33 in Operators.to_elements    | return pt.reshape(state, shape)
      //<-                     :50 in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
      //<-                     :54 in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
      //<-                     :58 in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
      //<-                     :59 in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
      //<-                     :60 in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
      //<-         physics.py:32   in Advection.upwind_flux    | leaving = self.outflow * interior
      //<-                   :33   in Advection.upwind_flux    | entering = self.inflow * exterior
      //<-                   :34   in Advection.upwind_flux    | return leaving + entering
      _pt_temp_0[4 * _pt_temp_0_dim0 + _pt_temp_0_dim1] = acc__pt_sum_r0_0;
    }
  for (int _pt_temp_dim0 = 0; _pt_temp_dim0 <= 3; ++_pt_temp_dim0)
    for (int _pt_temp_dim1 = 0; _pt_temp_dim1 <= 3; ++_pt_temp_dim1)
    {
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_lbound = (long) (0);
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_ubound = (long) (4);
      //<- loopy: start of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      acc__pt_sum_r0 = (double) (0.0);
      for (int _pt_sum_r0 = _pt_sum_r0_lbound; _pt_sum_r0 <= -1 + _pt_sum_r0_ubound; ++_pt_sum_r0)
        //<- loopy: step of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
        //<- inlines operators.py:33 in Operators.to_elements | return pt.reshape(state, shape)
        acc__pt_sum_r0 = acc__pt_sum_r0 + _pt_data[4 * _pt_temp_dim1 + _pt_sum_r0 + _pt_data_offset] * state[4 * _pt_temp_dim0 + _pt_sum_r0 + state_offset];
      //<- stores operators.py:41 in Operators.weak_derivative < time_stepping.py:25 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      //<- inlines operators.py:33 in Operators.to_elements | return pt.reshape(state, shape)
      _pt_temp[4 * _pt_temp_dim0 + _pt_temp_dim1] = acc__pt_sum_r0;
    }
  for (int rate1_dim0 = 0; rate1_dim0 <= 15; ++rate1_dim0)
    //<- stores operators.py:37 in Operators.to_state < time_stepping.py:25 | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
    //<- inlines physics.py:41 in Advection.rate | transport = self.velocity * ops.weak_derivative(u)
    //<-                   :49 in Advection.rate | return ops.to_state(transport - ops.lift(flux))
    rate1[rate1_dim0] = -1.25 * _pt_temp[rate1_dim0] + -1.0 * _pt_temp_0[rate1_dim0];
  for (int _pt_temp_1_dim0 = 0; _pt_temp_1_dim0 <= 3; ++_pt_temp_1_dim0)
    for (int _pt_temp_1_dim1 = 0; _pt_temp_1_dim1 <= 3; ++_pt_temp_1_dim1)
    {
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_1_lbound = (long) (0);
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_1_ubound = (long) (4);
      //<- loopy: start of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      acc__pt_sum_r0_1 = (double) (0.0);
      for (int _pt_sum_r0_1 = _pt_sum_r0_1_lbound; _pt_sum_r0_1 <= -1 + _pt_sum_r0_1_ubound; ++_pt_sum_r0_1)
        //<- loopy: step of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
        //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
        //<-         time_stepping.py:26 in rk4_step              | rate2 = rate(state + (dt / 2) * rate1)
        acc__pt_sum_r0_1 = acc__pt_sum_r0_1 + _pt_data[4 * _pt_temp_1_dim1 + _pt_sum_r0_1 + _pt_data_offset] * (state[4 * _pt_temp_1_dim0 + _pt_sum_r0_1 + state_offset] + 0.005 * rate1[4 * _pt_temp_1_dim0 + _pt_sum_r0_1]);
      //<- stores operators.py:41 in Operators.weak_derivative < time_stepping.py:26 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
      //<-         time_stepping.py:26 in rk4_step              | rate2 = rate(state + (dt / 2) * rate1)
      _pt_temp_1[4 * _pt_temp_1_dim0 + _pt_temp_1_dim1] = acc__pt_sum_r0_1;
    }
  for (int _pt_temp_2_dim0 = 0; _pt_temp_2_dim0 <= 3; ++_pt_temp_2_dim0)
    for (int _pt_temp_2_dim1 = 0; _pt_temp_2_dim1 <= 3; ++_pt_temp_2_dim1)
    {
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_2_lbound = (long) (0);
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_2_ubound = (long) (2);
      //<- loopy: start of the reduction for operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      acc__pt_sum_r0_2 = (double) (0.0);
      for (int _pt_sum_r0_2 = _pt_sum_r0_2_lbound; _pt_sum_r0_2 <= -1 + _pt_sum_r0_2_ubound; ++_pt_sum_r0_2)
        //<- loopy: step of the reduction for operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
        //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
        //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
        //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
        //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
        //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
        //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
        //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
        //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
        //<-                   :34       in Advection.upwind_flux    | return leaving + entering
        //<-         time_stepping.py:26 in rk4_step                 | rate2 = rate(state + (dt / 2) * rate1)
        acc__pt_sum_r0_2 = acc__pt_sum_r0_2 + _pt_data_0[2 * _pt_temp_2_dim1 + _pt_sum_r0_2 + _pt_data_0_offset] * (_pt_data_1[_pt_sum_r0_2 + _pt_data_1_offset] * ((_pt_sum_r0_2 < 1) ? state[4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + state_offset] + 0.005 * rate1[4 * _pt_temp_2_dim0 + _pt_sum_r0_2] : state[2 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + state_offset] + 0.005 * rate1[2 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2]) + _pt_data_2[_pt_sum_r0_2 + _pt_data_2_offset] * ((_pt_sum_r0_2 < 1) ? state[state_offset + -1 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_2_dim0, 4)] + 0.005 * rate1[-1 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_2_dim0, 4)] : state[3 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + state_offset + -16 * ((1 + _pt_temp_2_dim0) / 4)] + 0.005 * rate1[3 + 4 * _pt_temp_2_dim0 + _pt_sum_r0_2 + -16 * ((1 + _pt_temp_2_dim0) / 4)]));
      //<- stores operators.py:45 in Operators.lift < time_stepping.py:26 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
      //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
      //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
      //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
      //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
      //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
      //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
      //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
      //<-                   :34       in Advection.upwind_flux    | return leaving + entering
      //<-         time_stepping.py:26 in rk4_step                 | rate2 = rate(state + (dt / 2) * rate1)
      _pt_temp_2[4 * _pt_temp_2_dim0 + _pt_temp_2_dim1] = acc__pt_sum_r0_2;
    }
  for (int rate2_dim0 = 0; rate2_dim0 <= 15; ++rate2_dim0)
    //<- stores operators.py:37 in Operators.to_state < time_stepping.py:26 | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
    //<- inlines physics.py:41 in Advection.rate | transport = self.velocity * ops.weak_derivative(u)
    //<-                   :49 in Advection.rate | return ops.to_state(transport - ops.lift(flux))
    rate2[rate2_dim0] = -1.25 * _pt_temp_1[rate2_dim0] + -1.0 * _pt_temp_2[rate2_dim0];
  for (int _pt_temp_3_dim0 = 0; _pt_temp_3_dim0 <= 3; ++_pt_temp_3_dim0)
    for (int _pt_temp_3_dim1 = 0; _pt_temp_3_dim1 <= 3; ++_pt_temp_3_dim1)
    {
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_3_lbound = (long) (0);
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_3_ubound = (long) (4);
      //<- loopy: start of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      acc__pt_sum_r0_3 = (double) (0.0);
      for (int _pt_sum_r0_3 = _pt_sum_r0_3_lbound; _pt_sum_r0_3 <= -1 + _pt_sum_r0_3_ubound; ++_pt_sum_r0_3)
        //<- loopy: step of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
        //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
        //<-         time_stepping.py:27 in rk4_step              | rate3 = rate(state + (dt / 2) * rate2)
        acc__pt_sum_r0_3 = acc__pt_sum_r0_3 + _pt_data[4 * _pt_temp_3_dim1 + _pt_sum_r0_3 + _pt_data_offset] * (state[4 * _pt_temp_3_dim0 + _pt_sum_r0_3 + state_offset] + 0.005 * rate2[4 * _pt_temp_3_dim0 + _pt_sum_r0_3]);
      //<- stores operators.py:41 in Operators.weak_derivative < time_stepping.py:27 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
      //<-         time_stepping.py:27 in rk4_step              | rate3 = rate(state + (dt / 2) * rate2)
      _pt_temp_3[4 * _pt_temp_3_dim0 + _pt_temp_3_dim1] = acc__pt_sum_r0_3;
    }
  for (int _pt_temp_4_dim0 = 0; _pt_temp_4_dim0 <= 3; ++_pt_temp_4_dim0)
    for (int _pt_temp_4_dim1 = 0; _pt_temp_4_dim1 <= 3; ++_pt_temp_4_dim1)
    {
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_4_lbound = (long) (0);
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_4_ubound = (long) (2);
      //<- loopy: start of the reduction for operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      acc__pt_sum_r0_4 = (double) (0.0);
      for (int _pt_sum_r0_4 = _pt_sum_r0_4_lbound; _pt_sum_r0_4 <= -1 + _pt_sum_r0_4_ubound; ++_pt_sum_r0_4)
        //<- loopy: step of the reduction for operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
        //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
        //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
        //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
        //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
        //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
        //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
        //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
        //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
        //<-                   :34       in Advection.upwind_flux    | return leaving + entering
        //<-         time_stepping.py:27 in rk4_step                 | rate3 = rate(state + (dt / 2) * rate2)
        acc__pt_sum_r0_4 = acc__pt_sum_r0_4 + _pt_data_0[2 * _pt_temp_4_dim1 + _pt_sum_r0_4 + _pt_data_0_offset] * (_pt_data_1[_pt_sum_r0_4 + _pt_data_1_offset] * ((_pt_sum_r0_4 < 1) ? state[4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + state_offset] + 0.005 * rate2[4 * _pt_temp_4_dim0 + _pt_sum_r0_4] : state[2 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + state_offset] + 0.005 * rate2[2 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4]) + _pt_data_2[_pt_sum_r0_4 + _pt_data_2_offset] * ((_pt_sum_r0_4 < 1) ? state[state_offset + -1 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_4_dim0, 4)] + 0.005 * rate2[-1 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_4_dim0, 4)] : state[3 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + state_offset + -16 * ((1 + _pt_temp_4_dim0) / 4)] + 0.005 * rate2[3 + 4 * _pt_temp_4_dim0 + _pt_sum_r0_4 + -16 * ((1 + _pt_temp_4_dim0) / 4)]));
      //<- stores operators.py:45 in Operators.lift < time_stepping.py:27 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
      //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
      //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
      //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
      //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
      //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
      //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
      //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
      //<-                   :34       in Advection.upwind_flux    | return leaving + entering
      //<-         time_stepping.py:27 in rk4_step                 | rate3 = rate(state + (dt / 2) * rate2)
      _pt_temp_4[4 * _pt_temp_4_dim0 + _pt_temp_4_dim1] = acc__pt_sum_r0_4;
    }
  for (int rate3_dim0 = 0; rate3_dim0 <= 15; ++rate3_dim0)
    //<- stores operators.py:37 in Operators.to_state < time_stepping.py:27 | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
    //<- inlines physics.py:41 in Advection.rate | transport = self.velocity * ops.weak_derivative(u)
    //<-                   :49 in Advection.rate | return ops.to_state(transport - ops.lift(flux))
    rate3[rate3_dim0] = -1.25 * _pt_temp_3[rate3_dim0] + -1.0 * _pt_temp_4[rate3_dim0];
  for (int _pt_temp_5_dim0 = 0; _pt_temp_5_dim0 <= 3; ++_pt_temp_5_dim0)
    for (int _pt_temp_5_dim1 = 0; _pt_temp_5_dim1 <= 3; ++_pt_temp_5_dim1)
    {
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_5_lbound = (long) (0);
      //<- bound of a reduction: operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      _pt_sum_r0_5_ubound = (long) (4);
      //<- loopy: start of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      acc__pt_sum_r0_5 = (double) (0.0);
      for (int _pt_sum_r0_5 = _pt_sum_r0_5_lbound; _pt_sum_r0_5 <= -1 + _pt_sum_r0_5_ubound; ++_pt_sum_r0_5)
        //<- loopy: step of the reduction for operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
        //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
        //<-         time_stepping.py:28 in rk4_step              | rate4 = rate(state + dt * rate3)
        acc__pt_sum_r0_5 = acc__pt_sum_r0_5 + _pt_data[4 * _pt_temp_5_dim1 + _pt_sum_r0_5 + _pt_data_offset] * (state[4 * _pt_temp_5_dim0 + _pt_sum_r0_5 + state_offset] + 0.01 * rate3[4 * _pt_temp_5_dim0 + _pt_sum_r0_5]);
      //<- stores operators.py:41 in Operators.weak_derivative < time_stepping.py:28 | return pt.einsum("ij,ej->ei", self.weak_derivative_matrix, nodal_values)
      //<- inlines operators.py:33     in Operators.to_elements | return pt.reshape(state, shape)
      //<-         time_stepping.py:28 in rk4_step              | rate4 = rate(state + dt * rate3)
      _pt_temp_5[4 * _pt_temp_5_dim0 + _pt_temp_5_dim1] = acc__pt_sum_r0_5;
    }
  for (int _pt_temp_6_dim0 = 0; _pt_temp_6_dim0 <= 3; ++_pt_temp_6_dim0)
    for (int _pt_temp_6_dim1 = 0; _pt_temp_6_dim1 <= 3; ++_pt_temp_6_dim1)
    {
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_6_lbound = (long) (0);
      //<- bound of a reduction: operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      _pt_sum_r0_6_ubound = (long) (2);
      //<- loopy: start of the reduction for operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      acc__pt_sum_r0_6 = (double) (0.0);
      for (int _pt_sum_r0_6 = _pt_sum_r0_6_lbound; _pt_sum_r0_6 <= -1 + _pt_sum_r0_6_ubound; ++_pt_sum_r0_6)
        //<- loopy: step of the reduction for operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
        //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
        //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
        //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
        //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
        //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
        //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
        //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
        //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
        //<-                   :34       in Advection.upwind_flux    | return leaving + entering
        //<-         time_stepping.py:28 in rk4_step                 | rate4 = rate(state + dt * rate3)
        acc__pt_sum_r0_6 = acc__pt_sum_r0_6 + _pt_data_0[2 * _pt_temp_6_dim1 + _pt_sum_r0_6 + _pt_data_0_offset] * (_pt_data_1[_pt_sum_r0_6 + _pt_data_1_offset] * ((_pt_sum_r0_6 < 1) ? state[4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + state_offset] + 0.01 * rate3[4 * _pt_temp_6_dim0 + _pt_sum_r0_6] : state[2 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + state_offset] + 0.01 * rate3[2 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6]) + _pt_data_2[_pt_sum_r0_6 + _pt_data_2_offset] * ((_pt_sum_r0_6 < 1) ? state[state_offset + -1 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_6_dim0, 4)] + 0.01 * rate3[-1 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + -16 * loopy_floor_div_pos_b_int32(-1 + _pt_temp_6_dim0, 4)] : state[3 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + state_offset + -16 * ((1 + _pt_temp_6_dim0) / 4)] + 0.01 * rate3[3 + 4 * _pt_temp_6_dim0 + _pt_sum_r0_6 + -16 * ((1 + _pt_temp_6_dim0) / 4)]));
      //<- stores operators.py:45 in Operators.lift < time_stepping.py:28 | return pt.einsum("if,ef->ei", self.lift_matrix, face_values)
      //<- inlines operators.py:33     in Operators.to_elements    | return pt.reshape(state, shape)
      //<-                     :50     in Operators.face_values    | return nodal_values[:, 0:1], nodal_values[:, num_nodes - 1 : num_nodes]
      //<-                     :54     in Operators.interior_trace | return pt.concatenate([left, right], axis=1)
      //<-                     :58     in Operators.exterior_trace | left_neighbour = pt.roll(right, 1, axis=0)
      //<-                     :59     in Operators.exterior_trace | right_neighbour = pt.roll(left, -1, axis=0)
      //<-                     :60     in Operators.exterior_trace | return pt.concatenate([left_neighbour, right_neighbour], axis=1)
      //<-         physics.py:32       in Advection.upwind_flux    | leaving = self.outflow * interior
      //<-                   :33       in Advection.upwind_flux    | entering = self.inflow * exterior
      //<-                   :34       in Advection.upwind_flux    | return leaving + entering
      //<-         time_stepping.py:28 in rk4_step                 | rate4 = rate(state + dt * rate3)
      _pt_temp_6[4 * _pt_temp_6_dim0 + _pt_temp_6_dim1] = acc__pt_sum_r0_6;
    }
  for (int rate4_dim0 = 0; rate4_dim0 <= 15; ++rate4_dim0)
    //<- stores operators.py:37 in Operators.to_state < time_stepping.py:28 | return pt.reshape(nodal_values, (self.discretization.num_dofs,))
    //<- inlines physics.py:41 in Advection.rate | transport = self.velocity * ops.weak_derivative(u)
    //<-                   :49 in Advection.rate | return ops.to_state(transport - ops.lift(flux))
    rate4[rate4_dim0] = -1.25 * _pt_temp_5[rate4_dim0] + -1.0 * _pt_temp_6[rate4_dim0];
  for (int next_state_dim0 = 0; next_state_dim0 <= 15; ++next_state_dim0)
    //<- stores time_stepping.py:31 in rk4_step | next_state = state + dt * slope
    //<- inlines time_stepping.py:30 in rk4_step | slope = (rate1 + 2 * (rate2 + rate3) + rate4) / 6
    next_state[next_state_dim0] = state[next_state_dim0 + state_offset] + 0.01 * ((rate1[next_state_dim0] + 2.0 * (rate2[next_state_dim0] + rate3[next_state_dim0]) + rate4[next_state_dim0]) / 6.0);
}
