"""Cases that run at night alone: by day, every test has one case at least, and every planted error is found.

Those of ``BY_DAY`` are the only ones of their tests that run by day; the others of the same kind, such as more seeds,
sizes and families, run at night. Those of ``NIGHTLY`` took a second or more each in ``./check``; the few tests that
are there as a whole start processes or clusters of files.
"""

BY_DAY = {
    "cli/test_exit_codes": ("test_a_file_on_a_full_disk_ends_with_74_and_leaves_nothing[csv]",),
    "cli/test_improve": ("test_a_comparison_is_saved_with_a_witness_and_verified[command2-1000-0]",),
    "golden/test_both_ways": ("test_prism_file_and_constructor_agree[engagement:50]",),
    "oracles/test_certified_policy": (
        "test_the_exact_value_of_the_certified_policy_lies_between_the_bounds[expression]",
    ),
    "oracles/test_coupled_certificates": ("test_the_bracket_is_that_of_the_policy_which_is_returned[2009]",),
    "oracles/test_ellipsoid_backup": (
        "test_no_point_of_the_ellipsoid_is_worth_more_to_nature[1.0-1.0]",
        "test_the_chain_of_best_moves_is_worth_what_the_backup_says[-1.0--1.0]",
    ),
    "oracles/test_ellipsoid_solve": (
        "test_bounds_hold_at_the_true_point_and_are_no_wider_than_those_of_intervals[reach-min]",
    ),
    "oracles/test_log_engines": ("test_spark_and_duckdb_count_the_runs_of_a_case_study[betting:25-trajectories]",),
    "oracles/test_misfit_points": (
        "test_many_values_with_rows_off_by_the_misfit_lie_within_the_bounds[rectangular-False]",
        "test_values_with_rows_off_by_the_misfit_lie_within_the_bounds[rectangular]",
    ),
    "oracles/test_product_sets": (
        "test_every_point_of_the_set_is_in_the_region_exactly_and_within_all_bounds[after-l1]",
    ),
    "oracles/test_rectangular": ("test_bounds_contain_the_value_of_the_exact_game_and_the_policy_attains_them[reach]",),
    "oracles/test_region_exact": (
        "test_minima_are_never_above_the_exact_optimum_and_close_to_it[generic]",
        "test_no_vertex_of_the_table_claims_more_than_the_exact_optimum[generic]",
    ),
    "oracles/test_reward_points": ("test_values_at_points_lie_within_all_bounds[6]",),
    "oracles/test_solver_brute_force": (
        "test_bounds_contain_the_exact_value_and_the_policy_attains_it[until-unknown]",
        "test_bounds_contain_the_exact_value_when_more_is_asked_for_than_floats_can_give[reach-unknown]",
    ),
    "oracles/test_table_points": ("test_values_that_no_bet_excludes_keep_to_every_bound[walks-0]",),
    "statistical/test_constants_size": (
        "test_a_number_that_is_five_standard_errors_off_is_excluded_nine_times_of_ten[0.2--5]",
    ),
    "statistical/test_ellipsoid_coverage": (
        "test_the_ellipsoid_ever_misses_the_true_point_with_at_most_its_error[0.001-flat coin]",
    ),
    "statistical/test_misfit": (
        "test_no_bracket_misses_the_value_if_all_rows_are_off_by_the_misfit[rover:10,10-downward]",
        "test_the_true_point_is_in_all_sets_if_all_rows_are_off_by_the_misfit[betting:5-1]",
    ),
    "statistical/test_model_fit_size": (
        "test_all_tests_together_reject_a_right_model_at_most_as_often_as_they_say[machine]",
        "test_drift_tests_exclude_the_true_point_where_their_processes_say_so[rover:3,3,2]",
        "test_drifts_in_the_direction_that_the_data_have_taken_are_found[machine]",
        "test_p_values_of_right_models_are_not_smaller_than_uniform[machine-True]",
        "test_tests_of_each_kind_reject_a_right_model_at_most_as_often_as_they_say[machine-opponent]",
    ),
    "statistical/test_online_coverage": ("test_coupled_bounds_hold_at_all_updates_of_a_run_at_once[0.5]",),
    "statistical/test_renewed_sizes": (
        "test_no_time_to_end_is_worth_more_than_one[8]",
        "test_the_truth_is_excluded_as_seldom_as_is_promised[60-0.5]",
    ),
    "statistical/test_opponent": ("test_games_do_not_refute_the_package_as_it_is[repeated]",),
    "statistical/test_set_coverage": (
        "test_half_spaces_exclude_the_true_point_only_where_the_process_does[aircraft:20,10]",
        "test_no_set_misses_the_true_point_too_often[mixture 8]",
        "test_pilots_that_are_planned_or_powers_of_four_with_weights_are_accepted[1,000 throws, planned-0.1]",
    ),
    "statistical/test_table_coverage": (
        "test_an_opponent_makes_certificates_miss_no_more_often_than_they_say[few visits]",
    ),
    "statistical/test_wrong_models": (
        "test_a_wrong_model_is_found_and_no_bracket_misses_in_silence[machine, one constant]",
        "test_right_models_are_not_contradicted[rover:10,10]",
        "test_the_old_default_misses_in_silence[betting, smooth]",
        "test_without_the_test_of_the_model_tight_brackets_miss_in_silence[engagement, smooth]",
    ),
    "theorems/test_theorem_2": ("test_the_value_at_every_point_of_the_region_lies_between_the_bounds[parameter]",),
    "unit/test_advice": (
        "test_other_sets_have_advice_as_well[ellipsoid]",
        "test_predicted_widths_are_within_15_percent_of_measured_ones[aircraft:20,10]",
    ),
    "unit/test_bets": (
        "test_one_coin_ever_leaves_its_half_space_with_a_probability_of_at_most_the_error[-1-0.5]",
        "test_the_half_space_has_all_points_of_the_space_at_which_bets_have_not_won_too_much[10000-tree]",
    ),
    "unit/test_binomial": (
        "test_clopper_pearson_is_not_too_narrow_for_astronomic_numbers_of_trials[1000000000001-1e-09]",
    ),
    "unit/test_constants": ("test_the_error_of_a_test_is_its_share_of_a_fortieth[rows2-0.25]",),
    "unit/test_coupled": ("test_one_state_that_nature_can_hold_is_enough_to_refuse[0.2-0]",),
    "unit/test_tight_bounds": ("test_bounds_hold_the_exact_value_of_the_policy_and_take_few_sweeps[0.999]",),
    "unit/test_drift": ("test_a_coin_without_drift_is_contradicted_with_a_probability_of_at_most_the_error[1-0.5]",),
    "unit/test_environment": ("test_counts_are_those_of_the_steps_that_the_environment_made[rover:10,10]",),
    "unit/test_evidence": (
        "test_case_studies_have_evidence_near_their_largest_likelihood[parallel:5]",
        "test_evidence_in_the_plane_is_never_above_quadrature[factors]",
    ),
    "unit/test_finding": ("test_outlines_of_other_sets_hold_the_points_that_their_half_spaces_allow[interval]",),
    "unit/test_likelihood_pipeline": (
        "test_factors_that_are_negative_in_part_of_the_space_do_not_mislead_the_search[2]",
        "test_halving_the_error_never_narrows[early0]",
    ),
    "unit/test_likelihood_region": (
        "test_no_point_of_large_likelihood_is_outside_of_an_ellipsoid_or_beyond_a_tangent[products]",
        "test_regions_of_case_studies_contain_the_true_point[2000-rover:10,10]",
        "test_regions_of_random_models_have_the_points_whose_likelihood_is_large_enough[6]",
    ),
    "unit/test_log_pilots": (
        "test_a_simulated_log_has_the_counts_and_the_pilot_of_the_simulation[engagement:50-trajectories]",
        "test_text_that_is_kept_in_memory_has_the_pilot_of_text_that_is_read_again[False-options0]",
        "test_the_first_rows_of_many_files_and_chunks_are_those_of_the_first[polars]",
        "test_what_had_been_seen_at_a_moment_is_the_same_however_long_the_log_is[Polars, lazy-runs-trajectories]",
    ),
    "unit/test_memory": ("test_a_result_is_saved_read_and_explained[True]",),
    "unit/test_mixed_models": (
        "TestWhatFollows::test_a_certificate_is_saved_read_explained_and_reported[table-uniform]",
        "TestWhatFollows::test_questions_with_memory_are_asked_of_the_view[table]",
    ),
    "unit/test_observations": ("test_the_noise_of_a_visit_is_within_its_bound[after]",),
    "unit/test_online": ("test_an_interruption_within_an_episode_neither_loses_nor_doubles_it[333]",),
    "unit/test_other_studies": (
        "test_a_study_that_contradicts_the_data_is_named[likelihood]",
        "test_with_hardly_any_data_the_region_is_the_interval_of_the_study_at_its_share[likelihood]",
    ),
    "unit/test_pipeline": ("test_one_coin_with_two_frequencies_contradicts_the_model[coupled-likelihood]",),
    "unit/test_compiled": (
        "test_certificates_of_plain_and_of_compiled_kernels_are_equal_to_the_last_bit[parallel:1,0-options6]",
        "test_empty_arrays_and_both_kinds_of_integers_are_the_same_both_ways[int32-0]",
    ),
    "unit/test_prepared": (
        "test_half_spaces_are_those_of_the_pilot_whatever_was_learned_before[False-A]",
        "test_what_is_learned_after_something_else_is_the_same_bit_for_bit[1]",
        "test_what_was_learned_before_changes_no_bit_of_another_certificate[likelihood]",
    ),
    "unit/test_several_objectives": ("test_other_sets_hold_jointly_without_any_division[ellipsoid]",),
    "unit/test_staged_bets": (
        "test_the_half_space_has_all_points_of_the_space_at_which_the_fortune_is_small[1000000000-coin]",
    ),
    "unit/test_stored_models": (
        "test_a_stored_model_can_be_opened_again[aircraft]",
        "test_certificates_are_equal_bit_for_bit_in_chunks_of_any_size[aircraft-likelihood]",
    ),
    "unit/test_threads": (
        "test_certificates_of_case_studies_are_equal_for_any_number_of_threads[rover:3,3,2-coupled]",
        "test_solutions_are_equal_to_the_last_bit_for_any_number_of_threads[True]",
    ),
    "unit/test_thresholds": ("test_no_verdict_is_wrong_at_any_point_of_the_region_for_any_policy[4]",),
}

NIGHTLY = {
    "studies/test_command": (
        "test_cells_of_a_job_array_come_together_in_one_report",
        "test_the_paper_is_one_command",
        "test_misuse_says_what_to_write[arguments2-message2]",
    ),
    "cli/test_certify": ("test_a_log_given_directly_has_the_pilot_of_its_order[relaxations0]",),
    "cli/test_cli_page": (
        "test_every_command_of_a_page_prints_what_the_page_shows[howto/dirty_logs.md]",
        "test_every_command_of_a_page_prints_what_the_page_shows[howto/own_policy.md]",
        "test_every_command_of_a_page_prints_what_the_page_shows[howto/exchange.md]",
        "test_every_command_of_a_page_prints_what_the_page_shows[howto/check.md]",
        "test_every_command_of_a_page_prints_what_the_page_shows[howto/watch.md]",
        "test_every_command_of_a_page_prints_what_the_page_shows[tutorial.md]",
    ),
    "cli/test_exit_codes": (
        "test_a_closed_pipe_ends_with_141_and_without_a_word[a table]",
        "test_a_closed_pipe_ends_with_141_and_without_a_word[an error in json]",
        "test_a_closed_pipe_ends_with_141_and_without_a_word[json]",
        "test_ctrl_c_while_storm_is_loaded_is_not_taken_for_a_missing_storm[500]",
        "test_a_standard_error_that_cannot_be_written_changes_no_code[full]",
        "test_standard_output_on_a_full_disk_ends_with_74_and_one_line[a line]",
        "test_standard_output_on_a_full_disk_ends_with_74_and_one_line[help]",
        "test_standard_output_on_a_full_disk_ends_with_74_and_one_line[json]",
    ),
    "cli/test_models_and_questions": (
        'test_a_yes_about_one_policy_names_the_question_about_all[P>=0.5 [ F<=8 "goal" ]-Pmin>=0.5]',
    ),
    "cli/test_report_command": ("test_a_result_knows_the_command_and_its_report_shows_everything[later]",),
    "cli/test_warmup": (
        "test_a_read_only_install_uses_what_was_compiled_there_or_the_folder_of_the_user[True]",
        "test_a_command_that_lacked_kernels_has_them_compiled_for_the_next_one",
    ),
    "golden/test_case_studies": (
        "test_the_optimum_lies_in_a_certified_bracket[glider:51,47]",
        "test_the_optimum_lies_in_a_certified_bracket[glider:71,67]",
        "test_sizes_are_as_published_and_the_model_is_sound[glider:71,67]",
    ),
    "oracles/test_certified_policy": ("test_bounds_for_one_policy_are_nested_as_the_relaxations_are[True]",),
    "oracles/test_coupled_certificates": (
        "test_bounds_for_one_policy_are_nested_from_coupled_to_rectangular_to_expression[0]",
    ),
    "oracles/test_exact_values": (
        "test_exact_values_agree_with_storm_on_random_models[reach]",
        "test_exact_values_agree_with_storm_on_random_models[globally]",
    ),
    "oracles/test_log_engines": (
        "test_every_engine_counts_the_rows_as_a_slow_recount_does[Spark-transitions]",
        "test_every_engine_finds_the_first_runs[Spark-transitions]",
        "test_the_printed_query_counts_the_same_pilot_on_duckdb_and_on_spark[trajectories]",
        "test_the_printed_query_gives_the_same_table_on_duckdb_and_on_spark[transitions]",
        "test_states_are_mapped_alike_by_duckdb_and_by_spark[trajectories]",
    ),
    "oracles/test_rectangular": (
        "test_values_of_models_that_end_almost_surely[discounted]",
        "test_values_of_policies_that_draw_their_choices[robust]",
    ),
    "oracles/test_returned_policy": ("test_the_value_of_the_returned_policy_lies_between_the_bounds[0]",),
    "statistical/test_constants_size": (
        "test_the_case_studies_are_not_contradicted_by_their_own_data[betting:25]",
        "test_the_case_studies_are_not_contradicted_by_their_own_data[parallel:5]",
        "test_looking_after_every_toss_excludes_a_right_number_with_at_most_the_error[number0]",
        "test_no_way_of_choosing_the_next_coin_excludes_a_right_number_with_more_than_the_error[numbers0]",
    ),
    "statistical/test_ellipsoid_coverage": ("test_two_coins_ever_miss_the_true_point_with_at_most_their_error[0.05]",),
    "statistical/test_model_fit_size": (
        "test_an_error_that_is_not_divided_between_drifts_is_found[betting:5]",
        "test_an_error_that_is_not_divided_between_drifts_is_found[engagement:5]",
        "test_an_error_that_is_not_divided_between_drifts_is_found[parallel:2,1]",
    ),
    "statistical/test_theorem_1": ("test_data_of_an_opponent_who_stops_when_it_is_bad_for_us[clopper_pearson]",),
    "theorems/test_theorem_2": ("test_a_smaller_set_gives_a_better_bound[robust]",),
    "unit/test_advice": (
        "test_sampling_by_advice_needs_fewer_runs_than_uniform_and_optimistic_sampling[glider:11,9]",
        "test_sampling_by_advice_needs_fewer_runs_than_uniform_and_optimistic_sampling[rover:10,10]",
    ),
    "unit/test_bad_logs": (
        "test_files_of_a_folder_are_read_in_the_order_of_their_numbers_and_the_assumption_says_so[csv]",
    ),
    "unit/test_bets": (
        "test_one_coin_is_covered_whatever_the_pilot_showed[8]",
        "test_one_coin_is_covered_whatever_the_pilot_showed[20]",
    ),
    "unit/test_finding": ("test_no_point_that_explains_the_data_is_outside_of_an_outline[aircraft]",),
    "unit/test_readers": ("test_hostile_properties_are_refused_with_a_reason[Pmax=? [ (((((((((((]",),
    "unit/test_likelihood_table": (
        "test_the_true_point_is_in_all_half_spaces_and_in_the_region[0]",
        "test_the_true_point_is_in_all_half_spaces_and_in_the_region[2]",
        "test_the_true_point_is_in_all_half_spaces_and_in_the_region[3]",
        "test_the_true_point_is_in_all_half_spaces_and_in_the_region[4]",
    ),
    "unit/test_online": ("test_a_killed_process_loses_nothing[SIGINT]",),
    "unit/test_other_studies": ("test_the_p_value_of_agreement_is_valid_exactly[0.05]",),
    "unit/test_pictures": (
        "test_nothing_is_cut_off[advice]",
        "test_nothing_is_cut_off[pairs, long]",
    ),
    "unit/test_report": ("test_a_saved_result_has_the_same_report_with_and_without_findings[False]",),
    "unit/test_stored_models": ("test_a_given_policy_is_valued_as_in_memory[aircraft]",),
    "studies/test_studies": (
        "test_an_error_in_another_process_names_its_cell_and_ends_the_study",
        "test_the_numbers_are_the_same_in_this_process_and_in_two_others",
        "test_a_report_has_tables_and_pictures[table-cells0-The true value lies in 24 of 24 brackets.-figures0]",
        "test_a_report_has_tables_and_pictures[online-cells1-Medians over 2 seeds-figures1]",
    ),
}
